#pragma once

#include "server/engine/core/core.h"
#include "server/engine/core/task.h"
#include "server/tenant/transaction.h"

namespace stride::engine {

// Changes the state of a task: notes it in the journal and calls the task's observer.
void SetState(const Core& core, TenantTransaction& transaction, Task& task, TaskState state);

}  // namespace stride::engine
