#include "server/scheduler/dependency_tracker.h"

#include <algorithm>
#include <iterator>

#include "server/scheduler/hazards.h"

namespace stride::scheduler {

void DependencyTracker::Enter(TenantTransaction& transaction, const std::shared_ptr<Task>& task,
                              const std::shared_ptr<Task>& after) {
  if (after != nullptr) LinkBehind(task, after);
  task->order = ++partitions_.Of(transaction, task->tenant).last_order;
  RegisterAccesses(task);
}

void DependencyTracker::Leave(TenantTransaction& transaction, Task& task) {
  TaskList dependents = ReleaseAccesses(task);
  auto& freed = transaction.work().freed;
  std::move(dependents.begin(), dependents.end(), std::back_inserter(freed));
}

std::optional<Lane*> DependencyTracker::QueueToFollow(const Task& task) {
  Lane* queue = nullptr;
  for (const auto& before : task.pending) {
    if (before->state != TaskState::kDispatched || before->lane == nullptr) return std::nullopt;
    if (before->num_recalls > 0) return std::nullopt;
    if (queue != nullptr && queue != before->lane) return std::nullopt;
    queue = before->lane;
  }
  return queue;
}

}  // namespace stride::scheduler
