#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "server/engine/core/core.h"
#include "server/engine/core/device_queue.h"
#include "server/engine/core/task.h"
#include "server/engine/core/task_events.h"

namespace stride::engine {

// Ends tasks that their worker has: in its queue, where the worker may still remove them, or
// running, where they end by themselves within `kill_grace`, or their worker is killed.
//
// A worker removes a task together with its dependents, or none of them. A CUDA stream removes
// nothing, so a queued task that writes only its own new arrays is abandoned there: it still runs,
// in pinned memory, and its results are ignored.
class Cancellation {
 public:
  Cancellation(Core* core, TaskEvents* events) : core_(core), events_(events) {}

  // Ends a task in its worker's queue with `unrun` if the worker can still remove it. Otherwise it
  // may run for the grace, which begins when it is first in the queue. Then its worker is killed
  // with `running`.
  void Stop(TenantTransaction& transaction, const std::shared_ptr<Task>& task, absl::Status unrun,
            absl::Status running);
  // The worker's answer about the tasks from `sequence` on. Another answer is ignored.
  void Answered(TenantTransaction& transaction, DeviceQueue& queue, uint64_t sequence, bool taken);
  // Begins the grace of the first task in flight, if the task is to end. To be called when another
  // task becomes the first.
  void BeginGrace(DeviceQueue& queue);

 private:
  using Tasks = std::vector<std::shared_ptr<Task>>;
  void Recall(TenantTransaction& transaction, const std::shared_ptr<Task>& task,
              absl::Status status);
  void Granted(TenantTransaction& transaction, DeviceQueue& queue, const Tasks& tasks);
  void Refused(TenantTransaction& transaction, const Tasks& tasks);
  void Unanswered(TenantTransaction& transaction, const std::shared_ptr<Task>& task);
  bool GiveUp(TenantTransaction& transaction, DeviceQueue& queue, const Tasks& tasks);
  void EndRecalled(TenantTransaction& transaction, DeviceQueue& queue, const Tasks& tasks);
  void GraceOver(DeviceQueue& queue, const std::shared_ptr<Task>& task);

  Core* const core_;
  TaskEvents* const events_;
};

}  // namespace stride::engine
