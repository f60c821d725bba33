#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "absl/status/status.h"
#include "server/engine/core/core.h"
#include "server/engine/core/device_queues.h"
#include "server/engine/core/task_events.h"
#include "server/engine/memory/block_copier.h"
#include "server/engine/memory/copies_in_flight.h"
#include "server/engine/memory/memory_waiters.h"
#include "server/engine/memory/peer_reads.h"

namespace stride::engine {

// Copies buffers to the device where a task needs them: from a peer by the device itself, else
// through the host.
class Migration {
 public:
  Migration(Core* core, DeviceQueues* queues, CopiesInFlight* copies, BlockCopier* copier,
            PeerReads* peers, MemoryWaiters* waiters, TaskEvents* events)
      : core_(core),
        queues_(queues),
        copies_(copies),
        copier_(copier),
        peers_(peers),
        waiters_(waiters),
        events_(events) {}

  // Begins to copy the buffer into a block of the task's device. The task's num_moves counts the
  // copy; TaskEvents::Prepare or EndUnrun follows.
  void Start(GlobalTransaction& transaction, const std::shared_ptr<Task>& task,
             const std::shared_ptr<store::Buffer>& buffer, const store::Allocation& target);

  // Copies the buffer into a block, from the nearest place. Blocks; the caller has no transaction.
  absl::Status Bring(const std::shared_ptr<store::Buffer>& buffer, DeviceQueue& to,
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
    DeviceQueue* from = nullptr;
    store::Allocation block;
    bool is_peer = false;
  };
  Source FindSource(TenantTransaction& transaction, const store::Buffer& buffer,
                    const DeviceQueue& to);
  bool StartOnDevice(TenantTransaction& transaction, DeviceQueue& to,
                     const std::shared_ptr<store::Buffer>& buffer, const store::Allocation& target,
                     std::function<void()> otherwise);
  void Ended(GlobalTransaction& transaction, int device,
             const std::shared_ptr<store::Buffer>& buffer, const store::Allocation& target,
             uint64_t num_writes, absl::Status status);

  Core* const core_;
  DeviceQueues* const queues_;
  CopiesInFlight* const copies_;
  BlockCopier* const copier_;
  PeerReads* const peers_;
  MemoryWaiters* const waiters_;
  TaskEvents* const events_;
  int64_t returned_bytes_ = 0;
};

}  // namespace stride::engine
