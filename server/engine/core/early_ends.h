#pragma once

#include <memory>

#include "server/engine/core/task.h"
#include "server/tenant/transaction.h"

namespace stride::engine {

// Ends tasks before they end by themselves. Cancellation implements it.
class EarlyEnds {
 public:
  virtual ~EarlyEnds() = default;

  // Ends a task: at once if it waits, or when its worker has removed it from its queue. A running
  // task may end by itself within the grace; then its worker is killed.
  virtual void Cancel(TenantTransaction& transaction, const std::shared_ptr<Task>& task) = 0;
  // The same, with the error of a deadline.
  virtual void DeadlinePassed(TenantTransaction& transaction,
                              const std::shared_ptr<Task>& task) = 0;
};

}  // namespace stride::engine
