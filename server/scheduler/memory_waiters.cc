#include "server/scheduler/memory_waiters.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace stride::scheduler {

void MemoryWaiters::Enter(GlobalTransaction& transaction, const std::shared_ptr<Task>& task) {
  if (std::exchange(task->waits_memory, true)) return;
  task->memory_turn = NextTurn(transaction);
  ++num_waiters_;
  auto less = [](const auto& a, const auto& b) { return a->priority > b->priority; };
  auto& queue = task->lane->memory_queue;
  queue.insert(std::upper_bound(queue.begin(), queue.end(), task, less), task);
}

void MemoryWaiters::Leave(TenantTransaction& transaction, Task& task) {
  if (!std::exchange(task.waits_memory, false)) return;
  --num_waiters_;
  task.lane->memory_queue.remove_if([&](const auto& other) { return other.get() == &task; });
  if (!task.lane->memory_queue.empty()) Changed(transaction);  // for the next in the queue
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
  std::vector<Lane*> lanes;
  lanes_->ForEach(transaction, [&](Lane& lane) {
    if (!lane.memory_queue.empty()) lanes.push_back(&lane);
  });
  std::sort(lanes.begin(), lanes.end(), [](const Lane* a, const Lane* b) {
    return a->memory_queue.front()->memory_turn < b->memory_queue.front()->memory_turn;
  });
  for (Lane* lane : lanes) {
    while (!lane->memory_queue.empty()) {
      std::shared_ptr<Task> first = lane->memory_queue.front();
      tasks_->Retry(transaction, first);
      if (!lane->memory_queue.empty() && lane->memory_queue.front() == first) break;
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

}  // namespace stride::scheduler
