#include "server/engine/scheduling/dependency_tracker.h"

#include <algorithm>
#include <iterator>

#include "server/engine/scheduling/hazards.h"

namespace stride::engine {

void DependencyTracker::Enter(TenantTransaction& transaction, const std::shared_ptr<Task>& task,
                              const std::shared_ptr<Task>& after) {
  if (after != nullptr) LinkBehind(task, after);
  task->order.accepted = ++partitions_.Of(transaction, task->tenant).last_order;
  RegisterAccesses(task);
}

void DependencyTracker::Leave(TenantTransaction& transaction, Task& task) {
  TaskList dependents = ReleaseAccesses(task);
  auto& freed = transaction.work().freed;
  std::move(dependents.begin(), dependents.end(), std::back_inserter(freed));
}

std::optional<DeviceQueue*> DependencyTracker::QueueToFollow(const Task& task) {
  DeviceQueue* followed = nullptr;
  for (const auto& before : task.order.pending) {
    if (before->state != TaskState::kDispatched || before->queue == nullptr) return std::nullopt;
    if (before->cancel.num_recalls > 0) return std::nullopt;
    if (followed != nullptr && followed != before->queue) return std::nullopt;
    followed = before->queue;
  }
  return followed;
}

}  // namespace stride::engine
