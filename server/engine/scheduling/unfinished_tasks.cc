#include "server/engine/scheduling/unfinished_tasks.h"

#include <iterator>
#include <utility>

namespace stride::engine {

void UnfinishedTasks::Add(TenantTransaction& transaction, const std::shared_ptr<Task>& task) {
  Partition& partition = partitions_.Of(transaction, task->tenant);
  ++partition.of_tenant[task->tenant];
  task->order.unfinished_index = partition.tasks.size();
  partition.tasks.push_back(task);
  partition.NoteCount();
}

void UnfinishedTasks::Remove(TenantTransaction& transaction, Task& task) {
  Partition& partition = partitions_.Of(transaction, task.tenant);
  auto of_tenant = partition.of_tenant.find(task.tenant);
  if (--of_tenant->second == 0) partition.of_tenant.erase(of_tenant);
  std::vector<std::shared_ptr<Task>>& tasks = partition.tasks;
  std::swap(tasks[task.order.unfinished_index], tasks.back());
  tasks[task.order.unfinished_index]->order.unfinished_index = task.order.unfinished_index;
  tasks.pop_back();
  partition.NoteCount();
  if (core_->draining && tasks.empty()) transaction.WakeWaiters();
}

int UnfinishedTasks::Count(TenantTransaction& transaction, const TenantId& tenant) const {
  const std::map<TenantId, int>& of_tenant = partitions_.Of(transaction, tenant).of_tenant;
  auto it = of_tenant.find(tenant);
  return it == of_tenant.end() ? 0 : it->second;
}

int UnfinishedTasks::Count() const {
  int count = 0;
  for (const Partition& partition : partitions_.Unguarded())
    count += partition.count.load(std::memory_order_relaxed);
  return count;
}

void UnfinishedTasks::Drop() {
  std::vector<std::shared_ptr<Task>> tasks;
  for (Partition& partition : partitions_.Unguarded()) {
    std::move(partition.tasks.begin(), partition.tasks.end(), std::back_inserter(tasks));
    partition.tasks.clear();
  }
  for (const auto& task : tasks) {
    for (const Use& use : task->uses) {
      if (use.buffer == nullptr) continue;
      use.buffer->writer = nullptr;
      use.buffer->readers.clear();
    }
    task->uses.clear();
    task->order.pending.clear();
    task->order.dependents.clear();
    task->callbacks.granted = nullptr;
    task->callbacks.observer = nullptr;
    task->callbacks.on_done.clear();
    task->stream = nullptr;
    task->bodies = nullptr;
  }
}

}  // namespace stride::engine
