#pragma once

#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/base/steady_time.h"
#include "server/broker/worker.h"
#include "server/scheduler/core.h"
#include "server/scheduler/lane.h"
#include "server/store/arena.h"

namespace stride::scheduler {

// Supplies the workers of device queues to threads that copy. The scheduler implements it.
class WorkerSource {
 public:
  virtual ~WorkerSource() = default;
  // Returns a worker of the queue that has this arena mapped, if one is given. Starts a worker when
  // the queue has none. Blocks: the caller has no transaction.
  virtual absl::StatusOr<std::shared_ptr<broker::Worker>> BlockingWorker(
      Lane& lane, const std::shared_ptr<store::Arena>& arena,
      SteadyTime deadline = SteadyTime::InfiniteFuture()) = 0;
  // Waits until the queue has a worker. An error: none can be started, or the deadline passed. The
  // transaction ends while it waits.
  virtual absl::Status AwaitWorker(GlobalTransaction& transaction, Lane& lane,
                                   SteadyTime deadline) = 0;
};

// Keeps the queue's worker from ending for another queue's worker. No transaction is open when it
// is made or destroyed.
class WorkerInUse {
 public:
  WorkerInUse(Core* core, Lane* lane) : core_(core), lane_(lane) {
    TenantTransaction transaction(*core_, lane_->tenant);
    ++lane_->num_copies;
  }
  ~WorkerInUse() {
    TenantTransaction transaction(*core_, lane_->tenant);
    --lane_->num_copies;
  }
  WorkerInUse(const WorkerInUse&) = delete;
  WorkerInUse& operator=(const WorkerInUse&) = delete;

 private:
  Core* const core_;
  Lane* const lane_;
};

}  // namespace stride::scheduler
