#pragma once

#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/base/steady_time.h"
#include "server/broker/worker.h"
#include "server/engine/core/core.h"
#include "server/engine/core/device_queue.h"
#include "server/store/arena.h"

namespace stride::engine {

// Supplies the workers of device queues to threads that copy. WorkerStarter implements it.
class WorkerSource {
 public:
  virtual ~WorkerSource() = default;
  // Returns a worker of the queue that has this arena mapped, if one is given. Starts a worker when
  // the queue has none. Blocks: the caller has no transaction.
  virtual absl::StatusOr<std::shared_ptr<broker::Worker>> BlockingWorker(
      DeviceQueue& queue, const std::shared_ptr<store::Arena>& arena,
      SteadyTime deadline = SteadyTime::InfiniteFuture()) = 0;
  // Requests a worker and waits until the queue has it. An error: none can be started, or the
  // deadline passed. The transaction ends while it waits.
  virtual absl::Status AwaitWorker(GlobalTransaction& transaction, DeviceQueue& queue,
                                   SteadyTime deadline) = 0;
};

// Keeps the queue's worker from ending for another queue's worker. No transaction is open when it
// is made or destroyed.
class WorkerInUse {
 public:
  WorkerInUse(Core* core, DeviceQueue* queue) : core_(core), queue_(queue) {
    TenantTransaction transaction(*core_, queue_->tenant);
    ++queue_->num_copies;
  }
  ~WorkerInUse() {
    TenantTransaction transaction(*core_, queue_->tenant);
    --queue_->num_copies;
  }
  WorkerInUse(const WorkerInUse&) = delete;
  WorkerInUse& operator=(const WorkerInUse&) = delete;

 private:
  Core* const core_;
  DeviceQueue* const queue_;
};

}  // namespace stride::engine
