#pragma once

#include <memory>

#include "absl/status/status.h"
#include "server/engine/core/task.h"
#include "server/tenant/transaction.h"

namespace stride::engine {

// Receives the tasks whose wait for memory, or for a copy, has ended. The scheduler implements it.
class WaitingTasks {
 public:
  virtual ~WaitingTasks() = default;
  // Prepares a task again: there may be memory for it, or an input has arrived.
  virtual void Retry(GlobalTransaction& transaction, const std::shared_ptr<Task>& task) = 0;
  // Ends a task, since an input cannot be brought.
  virtual void Fail(GlobalTransaction& transaction, const std::shared_ptr<Task>& task,
                    absl::Status status) = 0;
  // Evaluates a task that waited for the end of a copy before it may write.
  virtual void CopyEnded(GlobalTransaction& transaction, const std::shared_ptr<Task>& task) = 0;
};

}  // namespace stride::engine
