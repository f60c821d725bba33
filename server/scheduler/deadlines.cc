// Scheduler: tasks whose deadline has passed. Nearly all tasks end long before. So a task removes
// its deadline when it ends, and a partition has one timer for all.
#include <algorithm>
#include <memory>
#include <string_view>

#include "server/base/error.h"
#include "server/base/steady_time.h"
#include "server/scheduler/in_parts.h"
#include "server/scheduler/scheduler.h"

namespace stride::scheduler {
namespace {

// Longest time until the next look. The timer keeps each request until its time. A series of ever
// earlier deadlines would leave a request each, for as long as a client chooses.
constexpr absl::Duration kFurthestLook = absl::Seconds(1);

absl::Status LateStatus(std::string_view text) {
  return MakeError(absl::StatusCode::kDeadlineExceeded, v1::ERROR_REASON_DEADLINE, text);
}

}  // namespace

void Scheduler::WatchDeadline(TenantTransaction& transaction, Task& task) {
  if (task.deadline == SteadyTime::InfiniteFuture()) return;
  Mine(transaction, task.tenant).deadlines.emplace(DeadlineKey(task), &task);
  LookAtDeadlinesLater(transaction, transaction.PartitionOf(task.tenant));
}

void Scheduler::ForgetDeadline(TenantTransaction& transaction, const Task& task) {
  if (task.deadline == SteadyTime::InfiniteFuture()) return;
  Mine(transaction, task.tenant).deadlines.erase(DeadlineKey(task));
}

void Scheduler::LookAtDeadlinesLater(TenantTransaction& transaction, int partition) {
  Partition& mine = partitions_.At(transaction, partition);
  if (mine.deadlines.empty()) return;
  const SteadyTime first = mine.deadlines.begin()->first.first;
  const SteadyTime look = std::min(first, core_->Now() + kFurthestLook);
  if (look >= mine.next_look) return;  // an earlier look is planned
  mine.next_look = look;
  core_->timer.At(look, [this, partition, look] { LookAtDeadlines(partition, look); });
}

void Scheduler::LookAtDeadlines(int partition, SteadyTime look) {
  // Thousands of tasks may have the same deadline.
  InParts(*core_, partition, [&](TenantTransaction& transaction) {
    Partition& mine = partitions_.At(transaction, partition);
    if (mine.next_look != look) return Step::kEnd;  // an earlier look has replaced this one
    const auto first = mine.deadlines.begin();
    if (first == mine.deadlines.end() || first->first.first > core_->Now()) {
      mine.next_look = SteadyTime::InfiniteFuture();
      LookAtDeadlinesLater(transaction, partition);
      return Step::kEnd;
    }
    const std::shared_ptr<Task> task = first->second->shared_from_this();
    mine.deadlines.erase(first);
    DeadlinePassed(transaction, task);
    return Step::kDone;
  });
}

void Scheduler::DeadlinePassed(TenantTransaction& transaction, const std::shared_ptr<Task>& task) {
  if (task->state == TaskState::kDone || task->deadline > core_->Now()) return;
  if (task->host_access) {
    Complete(transaction, task, LateStatus("the deadline passed before the operation ended"));
    return;
  }
  if (task->stream != nullptr) {
    StopStream(transaction, task, LateStatus("the deadline passed while the operation ran"));
    return;
  }
  absl::Status unrun = LateStatus("the deadline passed before the operation ran");
  if (task->state != TaskState::kDispatched) {
    EndUnrun(transaction, task, unrun);
    return;
  }
  Stop(transaction, task, unrun, LateStatus("the deadline passed while the operation ran"));
}

}  // namespace stride::scheduler
