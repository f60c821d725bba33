#include "server/engine/memory/memory_waiters.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace stride::engine {

void MemoryWaiters::Enter(GlobalTransaction& transaction, const std::shared_ptr<Task>& task) {
  if (std::exchange(task->memory.waits, true)) return;
  task->memory.turn = NextTurn(transaction);
  ++num_waiters_;
  auto less = [](const auto& a, const auto& b) {
    return a->options.priority > b->options.priority;
  };
  auto& waiting = task->queue->memory_queue;
  waiting.insert(std::upper_bound(waiting.begin(), waiting.end(), task, less), task);
}

void MemoryWaiters::Leave(TenantTransaction& transaction, Task& task) {
  if (!std::exchange(task.memory.waits, false)) return;
  --num_waiters_;
  task.queue->memory_queue.remove_if([&](const auto& other) { return other.get() == &task; });
  if (!task.queue->memory_queue.empty()) Changed(transaction);  // for the next in the queue
}

void MemoryWaiters::Changed(TenantTransaction& transaction) {
  if (num_waiters_.load(std::memory_order_relaxed) == 0) return;
  ++changes_;
  if (retry_soon_.exchange(true)) return;
  transaction.Defer([this] {
    GlobalTransaction transaction(*core_);
    Retry(transaction);
  });
}

// Others get free memory only if it is too little for the task that has waited longest.
void MemoryWaiters::Retry(GlobalTransaction& transaction) {
  retry_soon_ = false;
  if (num_waiters_ == 0) return;
  std::vector<DeviceQueue*> queues;
  queues_->ForEach(transaction, [&](DeviceQueue& queue) {
    if (!queue.memory_queue.empty()) queues.push_back(&queue);
  });
  std::sort(queues.begin(), queues.end(), [](const DeviceQueue* a, const DeviceQueue* b) {
    return a->memory_queue.front()->memory.turn < b->memory_queue.front()->memory.turn;
  });
  for (DeviceQueue* queue : queues) {
    while (!queue->memory_queue.empty()) {
      std::shared_ptr<Task> first = queue->memory_queue.front();
      events_->Prepare(transaction, first);
      if (!queue->memory_queue.empty() && queue->memory_queue.front() == first) break;
    }
  }
}

void MemoryWaiters::AwaitChange(GlobalTransaction& transaction, uint64_t seen,
                                SteadyTime deadline) {
  auto changed = [&] { return changes_ != seen || core_->ending; };
  ++num_waiters_;  // or no change would be notified
  transaction.Await(absl::Condition(&changed), deadline);
  --num_waiters_;
}

}  // namespace stride::engine
