#pragma once

#include <memory>

#include "absl/status/status.h"
#include "server/engine/core/task.h"
#include "server/tenant/transaction.h"

namespace stride::engine {

// Accepts tasks. The scheduler implements it.
class TaskIntake {
 public:
  virtual ~TaskIntake() = default;

  // Refuses with QUEUE_FULL or DRAINING, pieces excepted. An accepted task is entered into its
  // buffers' order. It does not begin before `after`, if given, has ended.
  virtual absl::Status Enqueue(TenantTransaction& transaction, const std::shared_ptr<Task>& task,
                               const std::shared_ptr<Task>& after = nullptr) = 0;
};

}  // namespace stride::engine
