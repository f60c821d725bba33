#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "server/engine/core/core.h"
#include "server/engine/core/device_queue.h"
#include "server/engine/core/early_ends.h"
#include "server/engine/core/task.h"
#include "server/engine/core/task_events.h"
#include "server/engine/core/worker_events.h"

namespace stride::engine {

// Ends tasks early: for a client, or at their deadline. A task that its worker does not have ends
// at once. A worker may still remove one from its queue. A running task ends by itself within
// `kill_grace`, or its worker is killed.
//
// A worker removes a task together with its dependents, or none of them. A CUDA stream removes
// nothing, so a queued task that writes only its own new arrays is abandoned there: it still runs,
// in pinned memory, and its results are ignored.
class Cancellation : public EarlyEnds, public CancelAnswers {
 public:
  Cancellation(Core* core, TaskEvents* events) : core_(core), events_(events) {}

  void Cancel(TenantTransaction& transaction, const std::shared_ptr<Task>& task) override;
  // All of a tenant's, of which some may be null; a few hundred in a transaction. The caller
  // has none.
  void CancelAll(const TenantId& tenant, absl::Span<const std::shared_ptr<Task>> tasks);
  void DeadlinePassed(TenantTransaction& transaction, const std::shared_ptr<Task>& task) override;

  void Answered(TenantTransaction& transaction, DeviceQueue& queue, uint64_t sequence,
                bool taken) override;
  // Begins the grace of the first task in flight, if the task is to end. To be called when another
  // task becomes the first.
  void BeginGrace(DeviceQueue& queue);

 private:
  using Tasks = std::vector<std::shared_ptr<Task>>;
  struct Reason;
  void End(TenantTransaction& transaction, const std::shared_ptr<Task>& task, const Reason& why);
  void Stop(TenantTransaction& transaction, const std::shared_ptr<Task>& task, absl::Status unrun,
            absl::Status running);
  void Recall(TenantTransaction& transaction, const std::shared_ptr<Task>& task,
              absl::Status status);
  void Granted(TenantTransaction& transaction, DeviceQueue& queue, const Tasks& tasks);
  void Refused(TenantTransaction& transaction, const Tasks& tasks);
  void Unanswered(TenantTransaction& transaction, const std::shared_ptr<Task>& task);
  bool Abandon(TenantTransaction& transaction, DeviceQueue& queue, const Tasks& tasks);
  void EndRecalled(TenantTransaction& transaction, DeviceQueue& queue, const Tasks& tasks);
  void GraceOver(DeviceQueue& queue, const std::shared_ptr<Task>& task);

  Core* const core_;
  TaskEvents* const events_;
};

}  // namespace stride::engine
