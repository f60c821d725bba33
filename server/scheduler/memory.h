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
#include "server/scheduler/core.h"
#include "server/scheduler/lane.h"
#include "server/scheduler/lanes.h"
#include "server/store/arena_pool.h"

namespace stride::scheduler {

// Gives tasks memory on devices, and in the places where arrays go that devices have no room for:
// blocks from the lane's arenas, new arenas within the place's limit, empty arenas taken back when
// memory is short. Moves nothing (spill.cc).
class Memory {
 public:
  struct Hooks {
    std::function<void(GlobalTransaction&, Lane&)> changed;  // a lane got an arena or failed to
    // The lane's arena lacks resources that another lane's worker has: of this device, or of the
    // machine (descriptors, memory). True: one ends, and waiters for memory are notified then.
    std::function<bool(GlobalTransaction&, const Lane&, std::optional<int> device)> give_way;
  };
  Memory(Core* core, Lanes* lanes, Hooks hooks);

  enum class Outcome {
    kAllocated,
    kLater,  // an arena is being made: `changed` follows
    kFull,   // the device's limit is reached, or it gave no arena
  };
  // For one with this turn (Task::memory_turn). A lane on a device without host memory must have a
  // worker.
  Outcome Allocate(GlobalTransaction& transaction, Lane& lane, uint64_t size, uint64_t turn,
                   store::Allocation* allocation);

  // In an arena that the lane has; false: there is no room in them.
  bool AllocateAtHand(TenantTransaction& transaction, Lane& lane, uint64_t size,
                      store::Allocation* allocation);
  // Host memory of the lane that its device uses in place; false: none is left.
  bool AllocateZeroCopy(TenantTransaction& transaction, Lane& lane, uint64_t size,
                        store::Allocation* allocation);
  // Counts memory of the lane's device that is not in arenas: a task's work memory, which its
  // worker takes and gives back (ops/scratch_bytes.h). False: there is no room, empty arenas given
  // back.
  bool TakeScratch(GlobalTransaction& transaction, Lane& lane, uint64_t bytes, uint64_t turn);
  void GiveBackScratch(TenantTransaction& transaction, const Lane& lane, uint64_t bytes);
  // So much is not counted: a worker keeps it from task to task, in the part of the device that the
  // limit leaves.
  uint64_t uncounted_scratch_bytes(int device) const;
  // A block that any of these gave.
  static void Free(TenantTransaction& transaction, Lane& lane, const store::Allocation& allocation);

  // Frees the blocks of buffers that died since, in each partition that the transaction has.
  void Reclaim(TenantTransaction& transaction);
  // Gives empty arenas back, all but `keep_bytes` of each lane.
  void Trim(GlobalTransaction& transaction, Lane& lane, uint64_t keep_bytes);

  // An arena for one block alone that is to be lent, counted as work memory of the lane's device
  // until Adopt. Host memory; any thread.
  absl::StatusOr<std::shared_ptr<store::Arena>> MakeHostArena(uint64_t size);
  uint64_t NewArenaId() { return next_arena_++; }
  void Adopt(GlobalTransaction& transaction, Lane& lane,
             const std::shared_ptr<store::Arena>& arena);

  // An arena of an earlier daemon.
  void Restore(GlobalTransaction& transaction, Lane& lane, std::shared_ptr<store::Arena> arena);

  // An array found no room in a file, or could not be written to one, for this reason: told in the
  // log, once until it works again.
  void FileFailed(GlobalTransaction& transaction, const absl::Status& why);
  void FileWorked(GlobalTransaction& transaction) { file_error_told_ = false; }

  // Gives back the empty arenas of a device, but for those of other lanes where somebody came to
  // wait before.
  void TrimAll(GlobalTransaction& transaction, const Lane& lane, uint64_t turn);
  // Bytes of arenas or of work memory that the device's limit still allows; below 0 after a limit
  // was lowered.
  int64_t room(TenantTransaction& transaction, int device) const;

  uint64_t arena_bytes(TenantTransaction& transaction, int device) const;
  uint64_t used_bytes(GlobalTransaction& transaction, int device) const;
  uint64_t limit_bytes(int device) const;  // any thread, without a lock

 private:
  bool MakeRoom(GlobalTransaction& transaction, const Lane& lane, uint64_t size, uint64_t turn);
  Outcome Grow(GlobalTransaction& transaction, Lane& lane, uint64_t size, uint64_t turn);
  Outcome AddHostArena(GlobalTransaction& transaction, Lane& lane, uint64_t size);
  Outcome Lacking(GlobalTransaction& transaction, Lane& lane, const absl::Status& why);
  void RequestArena(GlobalTransaction& transaction, Lane& lane, uint64_t size);
  // A file of `size` bytes; of `least` where the disk has no room for that.
  void RequestFile(GlobalTransaction& transaction, Lane& lane, uint64_t size, uint64_t least);

  Core* const core_;
  Lanes* const lanes_;
  const Hooks hooks_;
  std::map<int, uint64_t> reserved_;  // device -> bytes of arenas, those being made included
  std::map<int, std::atomic<uint64_t>> scratch_;  // device -> bytes of tasks' work memory
  // For Reclaim. Empty between its calls.
  PerPartition<std::vector<store::Reclaimer::Entry>> reclaimed_;
  std::atomic<uint64_t> next_arena_{1};
  SteadyTime next_file_;  // the disk was full: it is not asked for room again before this
  bool file_error_told_ = false;
  SteadyTime next_file_log_;
};

}  // namespace stride::scheduler
