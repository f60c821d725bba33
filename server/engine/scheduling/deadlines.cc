#include "server/engine/scheduling/deadlines.h"

#include <algorithm>
#include <memory>

#include "server/engine/core/for_each_batch.h"

namespace stride::engine {
namespace {

// Longest time until the next look. The timer keeps each request until its time. A series of ever
// earlier deadlines would leave a request each, for as long as a client chooses.
constexpr absl::Duration kFurthestLook = absl::Seconds(1);

}  // namespace

void Deadlines::Watch(TenantTransaction& transaction, Task& task) {
  if (task.options.deadline == SteadyTime::InfiniteFuture()) return;
  partitions_.Of(transaction, task.tenant).tasks.emplace(KeyOf(task), &task);
  LookLater(transaction, transaction.PartitionOf(task.tenant));
}

void Deadlines::Forget(TenantTransaction& transaction, const Task& task) {
  if (task.options.deadline == SteadyTime::InfiniteFuture()) return;
  partitions_.Of(transaction, task.tenant).tasks.erase(KeyOf(task));
}

void Deadlines::LookLater(TenantTransaction& transaction, int partition) {
  Partition& mine = partitions_.At(transaction, partition);
  if (mine.tasks.empty()) return;
  const SteadyTime first = mine.tasks.begin()->first.first;
  const SteadyTime look = std::min(first, core_->Now() + kFurthestLook);
  if (look >= mine.next_look) return;  // an earlier look is planned
  mine.next_look = look;
  core_->timer.At(look, [this, partition, look] { Look(partition, look); });
}

// Called by the timer at the planned time.
void Deadlines::Look(int partition, SteadyTime planned) {
  // Thousands of tasks may have the same deadline.
  ForEachBatch(*core_, partition, [&](TenantTransaction& transaction) {
    Partition& mine = partitions_.At(transaction, partition);
    if (mine.next_look != planned) return Step::kEnd;  // an earlier look has replaced this one
    const auto first = mine.tasks.begin();
    if (first == mine.tasks.end() || first->first.first > core_->Now()) {
      mine.next_look = SteadyTime::InfiniteFuture();
      LookLater(transaction, partition);
      return Step::kEnd;
    }
    const std::shared_ptr<Task> task = first->second->shared_from_this();
    mine.tasks.erase(first);
    ends_->DeadlinePassed(transaction, task);
    return Step::kDone;
  });
}

}  // namespace stride::engine
