#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/base/steady_time.h"
#include "server/engine/core/core.h"
#include "server/engine/core/device_queues.h"
#include "server/engine/core/task_events.h"
#include "server/engine/core/worker_source.h"
#include "server/engine/memory/block_copier.h"
#include "server/engine/memory/copies_in_flight.h"
#include "server/engine/memory/eviction.h"
#include "server/engine/memory/memory.h"
#include "server/engine/memory/memory_waiters.h"
#include "server/engine/memory/migration.h"
#include "server/engine/memory/peer_reads.h"
#include "server/engine/service/spill_sample.h"

namespace stride::engine {

// Owns the parts that place buffers in memory, and does what needs several of them: allocations for
// threads, and the totals.
class MemoryManager {
 public:
  MemoryManager(Core* core, DeviceQueues* queues, WorkerSource* workers, TaskEvents* events,
                decltype(Memory::Hooks::give_way) give_way);

  Memory& arenas() { return arenas_; }
  const Memory& arenas() const { return arenas_; }
  MemoryWaiters& waiters() { return waiters_; }
  CopiesInFlight& copies() { return copies_; }
  PeerReads& peers() { return peers_; }
  const PeerReads& peers() const { return peers_; }
  BlockCopier& copier() { return copier_; }
  Eviction& eviction() { return eviction_; }
  Migration& migration() { return migration_; }

  // Memory may be free: tasks and threads that wait for it try again soon.
  void Changed(TenantTransaction& transaction) { waiters_.Changed(transaction); }
  // Releases a pin of the buffer: the caller had raised pin_count.
  void Unpin(TenantTransaction& transaction, store::Buffer& buffer);

  // A block on a device. Waits for memory where tasks that end, or copies, may release some. The
  // caller has no transaction.
  absl::StatusOr<store::Allocation> BlockingAllocate(
      DeviceQueue& queue, uint64_t size, SteadyTime deadline = SteadyTime::InfiniteFuture());
  // Calls `take` with a turn until its outcome is not kLater, while others may release memory.
  // Afterwards the queue of a device without host memory has a worker. The transaction ends while
  // it waits. `size` is for the error.
  absl::Status Await(GlobalTransaction& transaction, DeviceQueue& queue, uint64_t size,
                     SteadyTime deadline, absl::FunctionRef<Memory::Outcome(uint64_t turn)> take);
  // Whether copies, arena growth or tasks in flight may release memory of the device, without a
  // call of a client.
  bool MayComeFree(GlobalTransaction& transaction, int device) const;

  // Where an array of this size begins that is to be on `device`: there, or, when it is larger than
  // the device, where idle arrays go.
  int HomeOf(int64_t bytes, int device) const;

  // Frees what has died, and tries those that wait.
  void Housekeep(GlobalTransaction& transaction);
  SpillSample Sample(GlobalTransaction& transaction) const;

 private:
  void Log(GlobalTransaction& transaction);

  Core* const core_;
  DeviceQueues* const queues_;
  WorkerSource* const workers_;
  Memory arenas_;
  MemoryWaiters waiters_;
  CopiesInFlight copies_;
  PeerReads peers_;
  BlockCopier copier_;
  Eviction eviction_;
  Migration migration_;
  int64_t logged_bytes_ = 0;
  SteadyTime next_log_;
};

}  // namespace stride::engine
