#pragma once

#include <memory>

#include "absl/status/status.h"
#include "server/engine/core/task.h"
#include "server/tenant/transaction.h"

namespace stride::engine {

// Steps in the life of a task, for the parts of the engine that cause them. The scheduler
// implements it.
class TaskEvents {
 public:
  virtual ~TaskEvents() = default;

  // Something that the task may wait for has changed: it continues if it can.
  virtual void Evaluate(TenantTransaction& transaction, const std::shared_ptr<Task>& task) = 0;
  // Continues the preparation of a placed task.
  virtual void Prepare(TenantTransaction& transaction, const std::shared_ptr<Task>& task) = 0;
  // The task leaves its device queue, and releases its memory there. `next` is its new state.
  virtual void Unplace(TenantTransaction& transaction, Task& task, TaskState next) = 0;
  // The task waits again, as if it had never been sent. The content of its outputs is dropped.
  virtual void Requeue(TenantTransaction& transaction, const std::shared_ptr<Task>& task) = 0;
  // The same for a task whose launch may still run: its outputs keep their memory.
  virtual void LeaveQueue(TenantTransaction& transaction, const std::shared_ptr<Task>& task) = 0;
  // Ends a task. Its outputs carry the status when it is an error.
  virtual void Complete(TenantTransaction& transaction, const std::shared_ptr<Task>& task,
                        absl::Status status) = 0;
  // Ends a task that never ran. Arrays that it was to write in place keep their content. Tasks
  // accepted after it that read its result carry its error, and so do these arrays for its session.
  virtual void EndUnrun(TenantTransaction& transaction, const std::shared_ptr<Task>& task,
                        absl::Status status) = 0;
};

}  // namespace stride::engine
