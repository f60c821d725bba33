#pragma once

#include <memory>

#include "absl/status/status.h"
#include "server/engine/core/core.h"
#include "server/engine/core/task.h"
#include "server/engine/core/task_events.h"

namespace stride::engine {

// Tasks that are on no device queue and that a conductor runs (Task::bodies): loops and branches.
class ConductedTasks {
 public:
  ConductedTasks(Core* core, TaskEvents* events) : core_(core), events_(events) {}

  // Begins a task whose earlier accesses have ended: its conductor runs on a thread of its own.
  void Begin(TenantTransaction& transaction, const std::shared_ptr<Task>& task);
  // The conductor has ended with `status`. A task that was stopped has the reason as its result.
  void Ended(TenantTransaction& transaction, const std::shared_ptr<Task>& task,
             absl::Status status);

 private:
  Core* const core_;
  TaskEvents* const events_;
};

}  // namespace stride::engine
