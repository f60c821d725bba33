// Scheduler: tasks whose time is over. Nearly all end long before: what is kept of a deadline goes
// with its task, and the timer is asked once for all of a stripe.
#include <algorithm>
#include <memory>
#include <string_view>

#include "server/base/error.h"
#include "server/base/steady_time.h"
#include "server/scheduler/in_parts.h"
#include "server/scheduler/scheduler.h"

namespace stride::scheduler {
namespace {

// The timer keeps what it was asked for. So it is not asked for what is further away: deadlines
// that come one before the other would each leave something there, for as long as a client likes.
constexpr absl::Duration kFurthestLook = absl::Seconds(1);

absl::Status LateStatus(std::string_view text) {
  return MakeError(absl::StatusCode::kDeadlineExceeded, v1::ERROR_REASON_DEADLINE, text);
}

}  // namespace

void Scheduler::WatchDeadline(Task& task) {
  if (task.deadline == SteadyTime::InfiniteFuture()) return;
  const int stripe = core_->StripeFor(task.tenant);
  stripes_[stripe].deadlines.emplace(DeadlineKey(task), &task);
  LookAtDeadlinesLater(stripe);
}

void Scheduler::ForgetDeadline(const Task& task) {
  if (task.deadline == SteadyTime::InfiniteFuture()) return;
  StripeFor(task.tenant).deadlines.erase(DeadlineKey(task));
}

void Scheduler::LookAtDeadlinesLater(int stripe) {
  Stripe& mine = stripes_[stripe];
  if (mine.deadlines.empty()) return;
  const SteadyTime first = mine.deadlines.begin()->first.first;
  const SteadyTime look = std::min(first, core_->Now() + kFurthestLook);
  if (look >= mine.next_look) return;  // it looks before
  mine.next_look = look;
  core_->timer.At(look, [this, stripe, look] { LookAtDeadlines(stripe, look); });
}

void Scheduler::LookAtDeadlines(int stripe, SteadyTime look) {
  Stripe& mine = stripes_[stripe];
  // Thousands may have the same one.
  InParts(*core_, stripe, [&] {
    if (mine.next_look != look) return Step::kEnd;  // another look comes, for one that is earlier
    const auto first = mine.deadlines.begin();
    if (first == mine.deadlines.end() || first->first.first > core_->Now()) {
      mine.next_look = SteadyTime::InfiniteFuture();
      LookAtDeadlinesLater(stripe);
      return Step::kEnd;
    }
    const std::shared_ptr<Task> task = first->second->shared_from_this();
    if (IsUnderWay(*task) && !core_->HoldsAll()) return Step::kNeedsAll;
    mine.deadlines.erase(first);
    DeadlinePassed(task);
    return Step::kDone;
  });
}

void Scheduler::DeadlinePassed(const std::shared_ptr<Task>& task) {
  if (task->state == TaskState::kDone || task->deadline > core_->Now()) return;
  if (task->host_access) {
    Complete(task, LateStatus("the deadline passed before the operation ended"));
    return;
  }
  if (task->stream != nullptr) {
    StopStream(task, LateStatus("the deadline passed while the operation ran"));
    return;
  }
  absl::Status unrun = LateStatus("the deadline passed before the operation ran");
  if (task->state != TaskState::kDispatched) {
    EndUnrun(task, unrun);
    return;
  }
  Stop(task, unrun, LateStatus("the deadline passed while the operation ran"));
}

}  // namespace stride::scheduler
