#include "server/engine/scheduling/conducted_tasks.h"

#include <utility>

#include "server/engine/scheduling/task_state.h"

namespace stride::engine {

// The next daemon sees a task that has begun, in an unknown worker.
void ConductedTasks::Begin(TenantTransaction& transaction, const std::shared_ptr<Task>& task) {
  task->dispatch_time = core_->Now();
  task->worker_record = 0;
  task->first_sequence = task->last_sequence = 1;
  task->stream = task->bodies;
  SetState(*core_, transaction, *task, TaskState::kDispatched);
  core_->streams.Run([conductor = task->stream] { conductor->Run(); });
}

void ConductedTasks::Ended(TenantTransaction& transaction, const std::shared_ptr<Task>& task,
                           absl::Status status) {
  if (!task->stop.ok() && !status.ok()) status = task->stop;
  task->stream = nullptr;
  if (task->ran_on_device >= 0 && !task->piece) {
    DeviceChange& account = transaction.ChangeOf(task->ran_on_device);
    ++(status.ok() ? account.succeeded : account.failed);
  }
  events_->Complete(transaction, task, std::move(status));
}

}  // namespace stride::engine
