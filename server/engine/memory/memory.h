#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/base/steady_time.h"
#include "server/engine/core/core.h"
#include "server/engine/core/device_queue.h"
#include "server/engine/core/device_queues.h"
#include "server/store/arena_pool.h"

namespace stride::engine {

// Allocates memory on devices, and in the places to which arrays are evicted: blocks from a device
// queue's arenas, new arenas within the place's limit, empty arenas taken back when memory is
// short. Evicts nothing (eviction.h).
class Memory {
 public:
  struct Hooks {
    std::function<void(GlobalTransaction&, DeviceQueue&)>
        changed;  // a device queue got an arena or failed to
    // An arena lacks resources that another queue's worker has: of this device, or of the machine
    // (descriptors, memory). True: a worker ends, and waiters for memory are notified then.
    std::function<bool(GlobalTransaction&, const DeviceQueue&, std::optional<int> device)> give_way;
  };
  Memory(Core* core, DeviceQueues* queues, Hooks hooks);

  enum class Outcome {
    kAllocated,
    kLater,  // an arena is being made: `changed` follows
    kFull,   // the device's limit is reached, or it gave no arena
  };
  // Allocates for a waiter with this turn (Task::memory_turn). A queue on a device without host
  // memory must have a worker.
  Outcome Allocate(GlobalTransaction& transaction, DeviceQueue& queue, uint64_t size, uint64_t turn,
                   store::Allocation* allocation);

  // Allocates from the queue's arenas; false: they have no room.
  bool AllocateAtHand(TenantTransaction& transaction, DeviceQueue& queue, uint64_t size,
                      store::Allocation* allocation);
  // Allocates host memory that the queue's device uses in place; false: none is left.
  bool AllocateZeroCopy(TenantTransaction& transaction, DeviceQueue& queue, uint64_t size,
                        store::Allocation* allocation);
  // Counts memory of the queue's device outside arenas: a task's work memory, which its worker
  // allocates and frees (ops/scratch_bytes.h). False: no room, although empty arenas were given
  // back.
  bool TakeScratch(GlobalTransaction& transaction, DeviceQueue& queue, uint64_t bytes,
                   uint64_t turn);
  void GiveBackScratch(TenantTransaction& transaction, const DeviceQueue& queue, uint64_t bytes);
  // Bytes of work memory that are not counted: a worker keeps them from task to task, in the part
  // of the device that the limit leaves.
  uint64_t uncounted_scratch_bytes(int device) const;
  // Frees a block from any of these.
  static void Free(TenantTransaction& transaction, DeviceQueue& queue,
                   const store::Allocation& allocation);

  // Frees the blocks of buffers that died since the last call, in each partition that the
  // transaction has.
  void Reclaim(TenantTransaction& transaction);
  // Gives back the queue's empty arenas, all but `keep_bytes`.
  void Trim(GlobalTransaction& transaction, DeviceQueue& queue, uint64_t keep_bytes);

  // Makes an uncounted arena of host memory. Any thread.
  absl::StatusOr<std::shared_ptr<store::Arena>> MakeHostArena(uint64_t size);
  uint64_t NewArenaId() { return next_arena_++; }
  // Adds an arena for one lent block. The arena was counted as work memory of the queue's device.
  void Adopt(GlobalTransaction& transaction, DeviceQueue& queue,
             const std::shared_ptr<store::Arena>& arena);

  // Restores an arena of an earlier daemon.
  void Restore(GlobalTransaction& transaction, DeviceQueue& queue,
               std::shared_ptr<store::Arena> arena);

  // Logs why an array found no room in a file, or could not be written to one. Logs once until
  // FileWorked.
  void FileFailed(GlobalTransaction& transaction, const absl::Status& why);
  void FileWorked(GlobalTransaction& transaction) { file_error_told_ = false; }

  // Gives back the device's empty arenas, except those of other queues with a waiter before `turn`.
  void TrimAll(GlobalTransaction& transaction, const DeviceQueue& queue, uint64_t turn);
  // Bytes of arenas or of work memory that the device's limit still allows; below 0 after the limit
  // was lowered.
  int64_t room(TenantTransaction& transaction, int device) const;

  uint64_t arena_bytes(TenantTransaction& transaction, int device) const;
  uint64_t used_bytes(GlobalTransaction& transaction, int device) const;
  uint64_t limit_bytes(int device) const;  // any thread, without a lock

 private:
  bool MakeRoom(GlobalTransaction& transaction, const DeviceQueue& queue, uint64_t size,
                uint64_t turn);
  Outcome Grow(GlobalTransaction& transaction, DeviceQueue& queue, uint64_t size, uint64_t turn);
  Outcome AddHostArena(GlobalTransaction& transaction, DeviceQueue& queue, uint64_t size);
  Outcome Lacking(GlobalTransaction& transaction, DeviceQueue& queue, const absl::Status& why);
  void RequestArena(GlobalTransaction& transaction, DeviceQueue& queue, uint64_t size);
  // Requests a file of `size` bytes, or of `least` where the disk has no room for that.
  void RequestFile(GlobalTransaction& transaction, DeviceQueue& queue, uint64_t size,
                   uint64_t least);

  Core* const core_;
  DeviceQueues* const queues_;
  const Hooks hooks_;
  std::map<int, uint64_t> reserved_;  // device -> bytes of arenas, including those being made
  std::map<int, std::atomic<uint64_t>> scratch_;  // device -> bytes of tasks' work memory
  // For Reclaim. Empty between its calls.
  PerPartition<std::vector<store::Reclaimer::Entry>> reclaimed_;
  std::atomic<uint64_t> next_arena_{1};
  SteadyTime next_file_;  // the disk was full: no request for a file before this
  bool file_error_told_ = false;
  SteadyTime next_file_log_;
};

}  // namespace stride::engine
