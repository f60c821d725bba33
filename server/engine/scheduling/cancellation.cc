#include "server/engine/scheduling/cancellation.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "server/base/error.h"
#include "server/engine/core/for_each_batch.h"
#include "server/engine/persistence/journal_writer.h"
#include "server/engine/scheduling/hazards.h"
#include "server/wire/status_page.h"

namespace stride::engine {
namespace {

bool Contains(const std::vector<std::shared_ptr<Task>>& tasks, const std::shared_ptr<Task>& task) {
  return std::find(tasks.begin(), tasks.end(), task) != tasks.end();
}

// The task and the later tasks in flight that depend on its outputs, directly or not. They would
// read garbage without it.
std::vector<std::shared_ptr<Task>> WithDependents(const std::shared_ptr<Task>& task,
                                                  const DeviceQueue::InFlightQueue& in_flight) {
  std::vector<std::shared_ptr<Task>> tasks = {task};
  bool behind = false;
  for (const DeviceQueue::InFlight& entry : in_flight) {
    if (!entry.last || entry.task == nullptr) continue;
    bool needs = behind && std::any_of(tasks.begin(), tasks.end(), [&](const auto& other) {
                   return NeedsOutputOf(*entry.task, *other);
                 });
    if (needs) tasks.push_back(entry.task);
    behind = behind || entry.task == task;
  }
  return tasks;
}

// Detaches the tasks from their launches, whose results are then ignored. Returns the tasks in the
// order of the queue. Calls `visit` with each launch before.
template <typename Visit>
std::vector<std::shared_ptr<Task>> TakeOut(const std::vector<std::shared_ptr<Task>>& tasks,
                                           DeviceQueue::InFlightQueue& in_flight, Visit visit) {
  std::vector<std::shared_ptr<Task>> out;
  for (DeviceQueue::InFlight& entry : in_flight) {
    if (entry.task == nullptr || !Contains(tasks, entry.task)) continue;
    visit(entry);
    if (entry.last) out.push_back(entry.task);
    entry.task = nullptr;
  }
  return out;
}

}  // namespace

// The error of a task that ends early, and its texts: before it ran, during an access from the
// host, and while it ran.
struct Cancellation::Reason {
  absl::StatusCode code;
  v1::ErrorReason reason;
  std::string_view unrun, access, running;

  absl::Status With(std::string_view text) const { return MakeError(code, reason, text); }
};

void Cancellation::Cancel(TenantTransaction& transaction, const std::shared_ptr<Task>& task) {
  End(transaction, task,
      {.code = absl::StatusCode::kCancelled,
       .reason = v1::ERROR_REASON_CANCELLED,
       .unrun = "the operation was cancelled before it ran",
       .access = "the operation was cancelled before it ended",
       .running = "the operation was cancelled while it ran"});
}

void Cancellation::DeadlinePassed(TenantTransaction& transaction,
                                  const std::shared_ptr<Task>& task) {
  End(transaction, task,
      {.code = absl::StatusCode::kDeadlineExceeded,
       .reason = v1::ERROR_REASON_DEADLINE,
       .unrun = "the deadline passed before the operation ran",
       .access = "the deadline passed before the operation ended",
       .running = "the deadline passed while the operation ran"});
}

void Cancellation::CancelAll(const TenantId& tenant,
                             absl::Span<const std::shared_ptr<Task>> tasks) {
  ForEachBatch(*core_, PartitionOf(tenant), [&](TenantTransaction& transaction) {
    if (tasks.empty()) return Step::kEnd;
    const std::shared_ptr<Task>& task = tasks.front();
    if (task != nullptr) Cancel(transaction, task);
    tasks.remove_prefix(1);
    return Step::kDone;
  });
}

void Cancellation::End(TenantTransaction& transaction, const std::shared_ptr<Task>& task,
                       const Reason& why) {
  if (task->state == TaskState::kDone) return;
  if (task->options.host_access) {
    events_->Complete(transaction, task, why.With(why.access));
  } else if (task->stream != nullptr) {
    // The tasks that its conductor has in flight are cancelled.
    if (!task->cancel.stop.ok()) return;
    task->cancel.stop = why.With(why.running);
    task->stream->Stop(transaction);
  } else if (task->state == TaskState::kDispatched) {
    Stop(transaction, task, why.With(why.unrun), why.With(why.running));
  } else {
    events_->EndUnrun(transaction, task, why.With(why.unrun));
  }
}

// Ends a task in its worker's queue with `unrun` if the worker can still remove it. Otherwise it
// may run for the grace, which begins when it is first in the queue. Then its worker is killed with
// `running`.
void Cancellation::Stop(TenantTransaction& transaction, const std::shared_ptr<Task>& task,
                        absl::Status unrun, absl::Status running) {
  if (task->cancel.stop.ok()) task->cancel.stop = std::move(running);
  if (!task->cancel.recall_refused) Recall(transaction, task, std::move(unrun));
  if (task->queue == nullptr) return;
  BeginGrace(*task->queue);
  if (task->state != TaskState::kDispatched || task->cancel.recall_refused) return;
  core_->timer.At(core_->Now() + core_->options.kill_grace,
                  [this, tenant = task->tenant, weak = std::weak_ptr<Task>(task)] {
                    TenantTransaction transaction(*core_, tenant);
                    if (auto task = weak.lock()) Unanswered(transaction, task);
                  });
}

// Asks the worker to remove a task and its dependents from its queue. It is one command, since the
// worker might begin a dependent between two. The task ends with `status` if it had not begun.
// Until the answer, new dependents are not dispatched.
void Cancellation::Recall(TenantTransaction& transaction, const std::shared_ptr<Task>& task,
                          absl::Status status) {
  if (task->cancel.recall.ok()) task->cancel.recall = std::move(status);
  if (std::exchange(task->cancel.recall_asked, true)) return;
  DeviceQueue& queue = *task->queue;
  std::vector<std::shared_ptr<Task>> tasks = WithDependents(task, queue.sending.in_flight);
  std::vector<uint64_t> sequences;
  for (const DeviceQueue::InFlight& entry : queue.sending.in_flight) {
    if (Contains(tasks, entry.task)) sequences.push_back(entry.sequence);
  }
  // One of its launches has ended, so the task has begun.
  bool whole = !sequences.empty() && sequences.front() == task->sent.first_sequence;
  if (!whole) {
    Refused(transaction, {task});
    return;
  }
  for (const auto& member : tasks) ++member->cancel.num_recalls;
  core_->journal_writer->Changed(transaction, *task);
  core_->journal_writer->Commit(transaction);  // the next daemon must know that it was cancelled
  queue.sending.recalls[sequences.front()] = std::move(tasks);
  // A dead worker sends no answer. The handling of its death honours the recall.
  if (queue.worker != nullptr) queue.worker->Cancel(sequences).IgnoreError();
}

void Cancellation::Answered(TenantTransaction& transaction, DeviceQueue& queue, uint64_t sequence,
                            bool taken) {
  auto asked = queue.sending.recalls.find(sequence);
  if (asked == queue.sending.recalls.end()) return;
  std::vector<std::shared_ptr<Task>> tasks = std::move(asked->second);
  queue.sending.recalls.erase(asked);
  for (const auto& task : tasks)
    task->cancel.num_recalls = std::max(0, task->cancel.num_recalls - 1);
  if (taken) {
    Granted(transaction, queue, tasks);
  } else {
    Refused(transaction, tasks);
  }
}

void Cancellation::Granted(TenantTransaction& transaction, DeviceQueue& queue, const Tasks& tasks) {
  std::vector<std::shared_ptr<Task>> out =
      TakeOut(tasks, queue.sending.in_flight, [](DeviceQueue::InFlight&) {});
  for (const auto& task : out) events_->Requeue(transaction, task);
  EndRecalled(transaction, queue, out);
}

// Ends tasks that are no longer in flight: the first with its own status, its dependents with the
// error that they inherited from it.
void Cancellation::EndRecalled(TenantTransaction& transaction, DeviceQueue& queue,
                               const Tasks& tasks) {
  for (const auto& task : tasks) {
    if (task->state == TaskState::kWaiting && !task->cancel.recall.ok())
      events_->EndUnrun(transaction, task, task->cancel.recall);
    events_->Evaluate(transaction, task);
  }
  transaction.work().Pump(queue);
}

void Cancellation::Refused(TenantTransaction& transaction, const Tasks& tasks) {
  const std::shared_ptr<Task>& first = tasks.front();
  first->cancel.recall_refused = true;
  if (first->queue != nullptr && Abandon(transaction, *first->queue, tasks)) return;
  // Dependents that waited for the answer may be dispatched now.
  for (const auto& task : tasks) {
    const TaskList dependents = task->order.dependents;
    for (const auto& dependent : dependents) events_->Evaluate(transaction, dependent);
  }
  if (first->queue != nullptr) BeginGrace(*first->queue);
}

// Called when a worker has not answered within the grace: its command loop is blocked. Treats the
// recall of a task that waits after others as refused. A late answer is ignored.
void Cancellation::Unanswered(TenantTransaction& transaction, const std::shared_ptr<Task>& task) {
  if (task->state != TaskState::kDispatched || task->cancel.recall_refused) return;
  DeviceQueue& queue = *task->queue;
  for (auto it = queue.sending.recalls.begin(); it != queue.sending.recalls.end(); ++it) {
    if (it->second.front() != task) continue;
    const std::vector<std::shared_ptr<Task>> tasks = it->second;
    const uint64_t sequence = it->first;
    if (Abandon(transaction, queue, tasks)) queue.sending.recalls.erase(sequence);
    return;
  }
}

// A CUDA stream cannot remove a launch. A queued task that writes only its own new arrays can be
// abandoned: it still runs, in pinned memory, and its results are ignored. False: the tasks may be
// running, or change arrays that others see.
bool Cancellation::Abandon(TenantTransaction& transaction, DeviceQueue& queue, const Tasks& tasks) {
  if (queue.sending.in_flight.empty() || queue.sending.in_flight.front().task == tasks.front())
    return false;
  if (!std::all_of(tasks.begin(), tasks.end(), [](const auto& task) {
        return task->state == TaskState::kDispatched && IsRepeatable(*task);
      })) {
    return false;
  }
  auto hold = [&](DeviceQueue::InFlight& entry) {
    entry.held.assign(entry.task->uses.begin(), entry.task->uses.end());
    for (const Use& use : entry.held) {
      if (use.buffer != nullptr) ++use.buffer->pin_count;
    }
    if (entry.task->cancel.stop.ok()) entry.task->cancel.stop = tasks.front()->cancel.stop;
    entry.given_up = entry.task;
  };
  std::vector<std::shared_ptr<Task>> out = TakeOut(tasks, queue.sending.in_flight, hold);
  for (const auto& task : out) events_->LeaveQueue(transaction, task);
  EndRecalled(transaction, queue, out);
  return true;
}

// Does not wait for an answer to the recall: a driver call may block the worker's command loop
// until a kernel ends.
void Cancellation::BeginGrace(DeviceQueue& queue) {
  if (queue.worker == nullptr || queue.sending.in_flight.empty()) return;
  const std::shared_ptr<Task>& task = queue.sending.in_flight.front().launched();
  if (task == nullptr || task->cancel.stop.ok()) return;
  if (std::exchange(task->cancel.grace_begun, true)) return;
  core_->timer.At(core_->Now() + core_->options.kill_grace,
                  [this, queue = &queue, weak = std::weak_ptr<Task>(task)] {
                    TenantTransaction transaction(*core_, queue->tenant);
                    if (auto task = weak.lock()) GraceOver(*queue, task);
                  });
}

void Cancellation::GraceOver(DeviceQueue& queue, const std::shared_ptr<Task>& task) {
  if (!task->cancel.grace_begun || queue.worker == nullptr) return;
  if (queue.sending.in_flight.empty() || queue.sending.in_flight.front().launched() != task) return;
  // The task may have ended, with its result still in flight. Then another task would die for it.
  uint64_t last = task->sent.first_sequence;
  for (const DeviceQueue::InFlight& entry : queue.sending.in_flight) {
    if (entry.launched() == task) last = entry.sequence;
  }
  if (wire::AtOrBefore(last, queue.worker->progress().completed_sequence)) return;
  queue.killed = true;
  queue.worker->Kill(task->cancel.stop);
}

}  // namespace stride::engine
