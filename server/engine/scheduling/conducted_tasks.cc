#include "server/engine/scheduling/conducted_tasks.h"

#include <utility>

#include "server/engine/scheduling/task_state.h"

namespace stride::engine {

// The next daemon sees a task that has begun, in an unknown worker.
void ConductedTasks::Begin(TenantTransaction& transaction, const std::shared_ptr<Task>& task) {
  task->timeline.dispatch_time = core_->Now();
  task->sent.worker_record = 0;
  task->sent.first_sequence = task->sent.last_sequence = 1;
  task->stream = task->bodies;
  SetState(*core_, transaction, *task, TaskState::kDispatched);
  core_->streams.Run([conductor = task->stream] { conductor->Run(); });
}

void ConductedTasks::Ended(TenantTransaction& transaction, const std::shared_ptr<Task>& task,
                           absl::Status status) {
  if (!task->cancel.stop.ok() && !status.ok()) status = task->cancel.stop;
  task->stream = nullptr;
  if (task->timeline.ran_on_device >= 0 && !task->options.piece) {
    DeviceChange& account = transaction.ChangeOf(task->timeline.ran_on_device);
    ++(status.ok() ? account.succeeded : account.failed);
  }
  events_->Complete(transaction, task, std::move(status));
}

}  // namespace stride::engine
