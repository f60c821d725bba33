// Scheduler: cancels tasks in their worker's queue, and observes whether they begin first.
#include <algorithm>
#include <utility>

#include "server/base/steady_time.h"
#include "server/scheduler/hazards.h"
#include "server/scheduler/recorder.h"
#include "server/scheduler/scheduler.h"
#include "server/wire/status_page.h"

namespace stride::scheduler {
namespace {

using wire::AtOrBefore;

// The first task in flight begins within microseconds, or after the worker has loaded its module.
constexpr absl::Duration kStartPoll = absl::Milliseconds(2);

bool Contains(const std::vector<std::shared_ptr<Task>>& tasks, const std::shared_ptr<Task>& task) {
  return std::find(tasks.begin(), tasks.end(), task) != tasks.end();
}

// The task and the later tasks in flight that depend on its outputs, directly or not. They would
// read garbage without it.
std::vector<std::shared_ptr<Task>> WithDependents(const std::shared_ptr<Task>& task,
                                                  const Lane::InFlightQueue& in_flight) {
  std::vector<std::shared_ptr<Task>> tasks = {task};
  bool behind = false;
  for (const Lane::InFlight& entry : in_flight) {
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
                                           Lane::InFlightQueue& in_flight, Visit visit) {
  std::vector<std::shared_ptr<Task>> out;
  for (Lane::InFlight& entry : in_flight) {
    if (entry.task == nullptr || !Contains(tasks, entry.task)) continue;
    visit(entry);
    if (entry.last) out.push_back(entry.task);
    entry.task = nullptr;
  }
  return out;
}

}  // namespace

namespace {

// True if the task's client learns of its end only from the arrays that the task was to write. The
// client itself asked for a cancellation. The answer to a kernel launch reports the launch's error.
bool LosesWrites(const Task& task, const absl::Status& status) {
  if (task.session == nullptr || task.drop_other_replicas || absl::IsCancelled(status))
    return false;
  const bool is_told =
      absl::IsInvalidArgument(status) || absl::IsNotFound(status) || absl::IsUnimplemented(status);
  return task.kernel == nullptr || !is_told;
}

}  // namespace

// Ends a task that never ran. Arrays that it was to write in place keep their content. Tasks
// accepted after it that read its result carry its error, and so do these arrays for its session.
void Scheduler::EndUnrun(TenantTransaction& transaction, const std::shared_ptr<Task>& task,
                         absl::Status status) {
  if (LosesWrites(*task, status)) {
    for (const Use& use : task->uses) {
      if (use.buffer != nullptr && use.write && !use.fresh && !use.held)
        use.buffer->LoseWrite(*task->session->name, status);
    }
  }
  for (const auto& dependent : task->dependents) {
    if (!dependent->lost_input.ok() || !NeedsOutputOf(*dependent, *task)) continue;
    dependent->lost_input = status;
    core_->recorder->Changed(transaction, *dependent);
  }
  Complete(transaction, task, std::move(status));
}

// Asks the worker to remove a task and its dependents from its queue. It is one command, since the
// worker might begin a dependent between two. The task ends with `status` if it had not begun.
// Until the answer, new dependents are not dispatched.
void Scheduler::Recall(TenantTransaction& transaction, const std::shared_ptr<Task>& task,
                       absl::Status status) {
  if (task->recall.ok()) task->recall = std::move(status);
  if (std::exchange(task->recall_asked, true)) return;
  Lane& lane = *task->lane;
  std::vector<std::shared_ptr<Task>> tasks = WithDependents(task, lane.in_flight);
  std::vector<uint64_t> sequences;
  for (const Lane::InFlight& entry : lane.in_flight) {
    if (Contains(tasks, entry.task)) sequences.push_back(entry.sequence);
  }
  // One of its launches has ended, so the task has begun.
  bool whole = !sequences.empty() && sequences.front() == task->first_sequence;
  if (!whole) {
    RecallRefused(transaction, {task});
    return;
  }
  for (const auto& member : tasks) ++member->num_recalls;
  core_->recorder->Changed(transaction, *task);
  core_->recorder->Commit(transaction);  // the next daemon must know that it was cancelled
  lane.recalls[sequences.front()] = std::move(tasks);
  // A dead worker sends no answer. The handling of its death honours the recall.
  if (lane.worker != nullptr) lane.worker->Cancel(sequences).IgnoreError();
}

void Scheduler::TasksCancelled(TenantTransaction& transaction, Lane& lane,
                               const broker::Worker* worker, uint64_t sequence, bool taken) {
  if (lane.worker.get() != worker) return;
  auto asked = lane.recalls.find(sequence);
  if (asked == lane.recalls.end()) return;
  std::vector<std::shared_ptr<Task>> tasks = std::move(asked->second);
  lane.recalls.erase(asked);
  for (const auto& task : tasks) task->num_recalls = std::max(0, task->num_recalls - 1);
  if (taken) {
    RecallGranted(transaction, lane, tasks);
  } else {
    RecallRefused(transaction, tasks);
  }
}

void Scheduler::RecallGranted(TenantTransaction& transaction, Lane& lane,
                              const std::vector<std::shared_ptr<Task>>& tasks) {
  std::vector<std::shared_ptr<Task>> out = TakeOut(tasks, lane.in_flight, [](Lane::InFlight&) {});
  for (const auto& task : out) TakeBack(transaction, task);
  EndRecalled(transaction, lane, out);
}

// Ends tasks that are no longer in flight: the first with its own status, its dependents with the
// error that they inherited from it.
void Scheduler::EndRecalled(TenantTransaction& transaction, Lane& lane,
                            const std::vector<std::shared_ptr<Task>>& tasks) {
  for (const auto& task : tasks) {
    if (task->state == TaskState::kWaiting && !task->recall.ok())
      EndUnrun(transaction, task, task->recall);
    Evaluate(transaction, task);
  }
  NoteStart(transaction, lane);
  Pump(transaction, lane);
}

void Scheduler::RecallRefused(TenantTransaction& transaction,
                              const std::vector<std::shared_ptr<Task>>& tasks) {
  const std::shared_ptr<Task>& first = tasks.front();
  first->recall_refused = true;
  if (first->lane != nullptr && GiveUp(transaction, *first->lane, tasks)) return;
  // Dependents that waited for the answer may be dispatched now.
  for (const auto& task : tasks) {
    const TaskList dependents = task->dependents;
    for (const auto& dependent : dependents) Evaluate(transaction, dependent);
  }
  if (first->lane != nullptr) BeginGrace(*first->lane);
}

// Called when a worker has not answered within the grace: its command loop is blocked. Treats the
// recall of a task that waits after others as refused. A late answer is ignored.
void Scheduler::RecallUnanswered(TenantTransaction& transaction,
                                 const std::shared_ptr<Task>& task) {
  if (task->state != TaskState::kDispatched || task->recall_refused) return;
  Lane& lane = *task->lane;
  for (auto it = lane.recalls.begin(); it != lane.recalls.end(); ++it) {
    if (it->second.front() != task) continue;
    const std::vector<std::shared_ptr<Task>> tasks = it->second;
    const uint64_t sequence = it->first;
    if (GiveUp(transaction, lane, tasks)) lane.recalls.erase(sequence);
    return;
  }
}

// A CUDA stream cannot remove a launch. A queued task that writes only its own new arrays can be
// abandoned: it still runs, in pinned memory, and its results are ignored. False: the tasks may be
// running, or change arrays that others see.
bool Scheduler::GiveUp(TenantTransaction& transaction, Lane& lane,
                       const std::vector<std::shared_ptr<Task>>& tasks) {
  if (lane.in_flight.empty() || lane.in_flight.front().task == tasks.front()) return false;
  if (!std::all_of(tasks.begin(), tasks.end(), [](const auto& task) {
        return task->state == TaskState::kDispatched && IsRepeatable(*task);
      })) {
    return false;
  }
  auto hold = [&](Lane::InFlight& entry) {
    entry.held.assign(entry.task->uses.begin(), entry.task->uses.end());
    for (const Use& use : entry.held) {
      if (use.buffer != nullptr) ++use.buffer->num_holders;
    }
    if (entry.task->stop.ok()) entry.task->stop = tasks.front()->stop;
    entry.given_up = entry.task;
  };
  std::vector<std::shared_ptr<Task>> out = TakeOut(tasks, lane.in_flight, hold);
  for (const auto& task : out) LeaveQueue(transaction, task);
  EndRecalled(transaction, lane, out);
  return true;
}

// Reads on the status page whether the first task in flight has begun, and notifies its observer.
// Everything before it has been reported, so it begins as soon as the worker, or on a GPU the
// stream, reaches it.
void Scheduler::NoteStart(TenantTransaction& transaction, Lane& lane) {
  BeginGrace(lane);
  if (lane.worker == nullptr || lane.in_flight.empty()) return;
  const Lane::InFlight& first = lane.in_flight.front();
  Task* task = first.task.get();
  if (task == nullptr || task->observer == nullptr || task->begin_time != SteadyTime()) return;
  if (AtOrBefore(first.sequence, lane.worker->progress().started_sequence)) {
    task->begin_time = core_->Now();
    transaction.Defer([observer = *task->observer] { observer(TaskState::kDispatched); });
    return;
  }
  if (std::exchange(lane.watching_start, true)) return;
  core_->timer.At(core_->Now() + kStartPoll, [this, lane = &lane] {
    TenantTransaction transaction(*core_, lane->tenant);
    lane->watching_start = false;
    NoteStart(transaction, *lane);
  });
}

}  // namespace stride::scheduler
