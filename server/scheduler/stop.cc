// Scheduler: ends a task that is in its worker's queue, perhaps running.
#include <utility>

#include "server/base/error.h"
#include "server/scheduler/argument_text.h"
#include "server/scheduler/in_parts.h"
#include "server/scheduler/scheduler.h"
#include "server/wire/status_page.h"

namespace stride::scheduler {

// The task ends with `unrun` if the worker can still remove it from its queue. Otherwise it may run
// for the grace, which begins when it is first in the queue. Then its worker is killed with
// `running`.
void Scheduler::Stop(TenantTransaction& transaction, const std::shared_ptr<Task>& task,
                     absl::Status unrun, absl::Status running) {
  if (task->stop.ok()) task->stop = std::move(running);
  if (!task->recall_refused) Recall(transaction, task, std::move(unrun));
  if (task->lane == nullptr) return;
  BeginGrace(*task->lane);
  if (task->state != TaskState::kDispatched || task->recall_refused) return;
  core_->timer.At(core_->Now() + core_->options.kill_grace,
                  [this, tenant = task->tenant, weak = std::weak_ptr<Task>(task)] {
                    TenantTransaction transaction(*core_, tenant);
                    if (auto task = weak.lock()) RecallUnanswered(transaction, task);
                  });
}

void Scheduler::CancelAll(const TenantId& tenant, absl::Span<const std::shared_ptr<Task>> tasks) {
  InParts(*core_, StripeOf(tenant), [&](TenantTransaction& transaction) {
    if (tasks.empty()) return Step::kEnd;
    const std::shared_ptr<Task>& task = tasks.front();
    if (task != nullptr) Cancel(transaction, task);
    tasks.remove_prefix(1);
    return Step::kDone;
  });
}

// Begins the grace of the first task in flight, if the task is to end. It does not wait for an
// answer to the recall: a driver call may block the worker's command loop until a kernel ends.
void Scheduler::BeginGrace(Lane& lane) {
  if (lane.worker == nullptr || lane.in_flight.empty()) return;
  const std::shared_ptr<Task>& task = lane.in_flight.front().launched();
  if (task == nullptr || task->stop.ok()) return;
  if (std::exchange(task->grace_begun, true)) return;
  core_->timer.At(core_->Now() + core_->options.kill_grace,
                  [this, lane = &lane, weak = std::weak_ptr<Task>(task)] {
                    TenantTransaction transaction(*core_, lane->tenant);
                    if (auto task = weak.lock()) GraceOver(*lane, task);
                  });
}

void Scheduler::GraceOver(Lane& lane, const std::shared_ptr<Task>& task) {
  if (!task->grace_begun || lane.worker == nullptr) return;
  if (lane.in_flight.empty() || lane.in_flight.front().launched() != task) return;
  // The task may have ended, with its result still in flight. Then another task would die for it.
  uint64_t last = task->first_sequence;
  for (const Lane::InFlight& entry : lane.in_flight) {
    if (entry.launched() == task) last = entry.sequence;
  }
  if (wire::AtOrBefore(last, lane.worker->progress().completed_sequence)) return;
  lane.killed = true;
  lane.worker->Kill(task->stop);
}

// The status of the task that was running when its worker died.
absl::Status Scheduler::LossOf(const Lane& lane, const Task& task, const broker::WorkerDeath& death,
                               bool faulted) const {
  if (faulted) return WithArguments(death.cause, task);
  if (!task.stop.ok()) return task.stop;
  // The worker was killed for a task that had just ended, and this task cannot be repeated.
  if (lane.killed) {
    return MakeError(absl::StatusCode::kAborted, v1::ERROR_REASON_WORKER_LOST,
                     "the device process was ended for another operation while this one ran");
  }
  return death.cause;
}

}  // namespace stride::scheduler
