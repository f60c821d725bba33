#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "server/engine/core/task.h"
#include "server/tenant/transaction.h"

namespace stride::engine {

// The order of tasks that use the same buffers (hazards.h), by the order of acceptance.
class DependencyTracker {
 public:
  // Enters a new task: it waits for earlier accesses to its buffers, and for `after` if given.
  void Enter(TenantTransaction& transaction, const std::shared_ptr<Task>& task,
             const std::shared_ptr<Task>& after = nullptr);
  // Removes a task that has ended. Its dependents enter the transaction's work list.
  void Leave(TenantTransaction& transaction, Task& task);

  // The device queue in whose worker all accesses are that the task waits for: it may follow them
  // there, since a worker keeps order. Null: it waits for none. Empty: it has to wait, because one
  // has not been sent, is elsewhere, or may be taken back from its worker.
  static std::optional<DeviceQueue*> QueueToFollow(const Task& task);
  static bool MayFollowIn(const DeviceQueue& queue, const Task& task) {
    const std::optional<DeviceQueue*> followed = QueueToFollow(task);
    return followed.has_value() && (*followed == nullptr || *followed == &queue);
  }

 private:
  struct alignas(64) Partition {
    uint64_t last_order = 0;  // Task::order of the newest task
  };
  PerPartition<Partition> partitions_;
};

}  // namespace stride::engine
