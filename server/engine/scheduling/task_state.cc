#include "server/engine/scheduling/task_state.h"

#include "server/engine/persistence/journal_writer.h"

namespace stride::engine {

void SetState(const Core& core, TenantTransaction& transaction, Task& task, TaskState state) {
  task.state = state;
  if (state != TaskState::kPreparing) core.journal_writer->Changed(transaction, task);
  if (task.callbacks.observer != nullptr)
    transaction.Defer([observer = *task.callbacks.observer, state] { observer(state); });
}

}  // namespace stride::engine
