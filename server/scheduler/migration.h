#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "absl/status/status.h"
#include "server/scheduler/block_copier.h"
#include "server/scheduler/copies_in_flight.h"
#include "server/scheduler/core.h"
#include "server/scheduler/lanes.h"
#include "server/scheduler/memory_waiters.h"
#include "server/scheduler/peer_reads.h"
#include "server/scheduler/waiting_tasks.h"

namespace stride::scheduler {

// Copies buffers to the device where a task needs them: from a peer by the device itself, else
// through the host.
class Migration {
 public:
  Migration(Core* core, Lanes* lanes, CopiesInFlight* copies, BlockCopier* copier, PeerReads* peers,
            MemoryWaiters* waiters, WaitingTasks* tasks)
      : core_(core),
        lanes_(lanes),
        copies_(copies),
        copier_(copier),
        peers_(peers),
        waiters_(waiters),
        tasks_(tasks) {}

  // Begins to copy the buffer into a block of the task's device. The task's num_moves counts the
  // copy; WaitingTasks::Retry or Fail follows.
  void Start(GlobalTransaction& transaction, const std::shared_ptr<Task>& task,
             const std::shared_ptr<store::Buffer>& buffer, const store::Allocation& target);

  // Copies the buffer into a block, from the nearest place. Blocks; the caller has no transaction.
  absl::Status Bring(const std::shared_ptr<store::Buffer>& buffer, Lane& to,
                     const store::Allocation& target);

  // The buffer's bytes, if they are few and the daemon maps both them and the target: the caller
  // copies them at once, since handing them to another thread would cost more. Else null.
  static const void* BytesAtHand(const store::Buffer& buffer, const store::Allocation& target);

  // Bytes copied back from host memory or files so far.
  int64_t returned_bytes(TenantTransaction&) const { return returned_bytes_; }

 private:
  // Where a buffer is copied from.
  struct Source {
    std::shared_ptr<const std::string> inline_bytes;  // set: no block
    Lane* from = nullptr;
    store::Allocation block;
    bool is_peer = false;
  };
  Source FindSource(TenantTransaction& transaction, const store::Buffer& buffer, const Lane& to);
  bool StartOnDevice(TenantTransaction& transaction, Lane& to,
                     const std::shared_ptr<store::Buffer>& buffer, const store::Allocation& target,
                     std::function<void()> otherwise);
  void Ended(GlobalTransaction& transaction, int device,
             const std::shared_ptr<store::Buffer>& buffer, const store::Allocation& target,
             uint64_t num_writes, absl::Status status);

  Core* const core_;
  Lanes* const lanes_;
  CopiesInFlight* const copies_;
  BlockCopier* const copier_;
  PeerReads* const peers_;
  MemoryWaiters* const waiters_;
  WaitingTasks* const tasks_;
  int64_t returned_bytes_ = 0;
};

}  // namespace stride::scheduler
