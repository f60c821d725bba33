#include "server/engine/scheduling/worker_changes.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/base/error.h"
#include "server/engine/core/argument_text.h"
#include "server/engine/persistence/journal_writer.h"
#include "server/engine/scheduling/hazards.h"
#include "server/engine/scheduling/task_dispositions.h"
#include "server/wire/status_page.h"

namespace stride::engine {
namespace {

using wire::AtOrBefore;

QueuedTask AsQueued(const Task& task) {
  QueuedTask queued{.first_sequence = task.sent.first_sequence,
                    .last_sequence = task.sent.last_sequence,
                    .repeatable = IsRepeatable(task) && task.sent.num_deaths < kMaxTaskAttempts,
                    .cancelled = !task.cancel.recall.ok()};
  for (const Use& use : task.uses) {
    queued.uses.push_back({.buffer = reinterpret_cast<uintptr_t>(use.buffer.get()),
                           .write = use.write,
                           .fresh = use.fresh});
  }
  return queued;
}

// Whether a task ended the worker, by a fault of its own.
bool IsFault(const broker::WorkerDeath& death) {
  return death.faulting_sequence != 0 || ReasonOf(death.cause) == v1::ERROR_REASON_KERNEL_FAULT;
}

// The task that was running: the one named, else the first that was begun and had not ended. Null:
// none was.
std::shared_ptr<Task> RunningTask(const DeviceQueue::InFlightQueue& in_flight,
                                  const broker::WorkerDeath& death) {
  for (const DeviceQueue::InFlight& entry : in_flight) {
    if (entry.launched() == nullptr) continue;
    bool named = entry.sequence == death.faulting_sequence;
    bool running = death.faulting_sequence == 0 &&
                   !AtOrBefore(entry.sequence, death.completed_sequence) &&
                   AtOrBefore(entry.sequence, death.started_sequence);
    if (named || running) return entry.launched();
  }
  return nullptr;
}

// The status of the task that was running when its worker died.
absl::Status LossOf(const DeviceQueue& queue, const Task& task, const broker::WorkerDeath& death,
                    bool faulted) {
  if (faulted) return WithArguments(death.cause, task);
  if (!task.cancel.stop.ok()) return task.cancel.stop;
  // The worker was killed for a task that had just ended, and this task cannot be repeated.
  if (queue.killed) {
    return MakeError(absl::StatusCode::kAborted, v1::ERROR_REASON_WORKER_LOST,
                     "the device process was ended for another operation while this one ran");
  }
  return death.cause;
}

// The tasks that a worker had when it died, by what becomes of them.
struct SortedTasks {
  std::vector<std::shared_ptr<Task>> again;
  std::vector<std::pair<std::shared_ptr<Task>, absl::Status>> ended;
};

// `running`: the task that was running, null if none was.
SortedTasks SortTasks(const DeviceQueue& queue, const DeviceQueue::InFlightQueue& in_flight,
                      const broker::WorkerDeath& death, const std::shared_ptr<Task>& running) {
  const bool faulted = IsFault(death);
  std::vector<std::shared_ptr<Task>> tasks;
  std::vector<QueuedTask> sent;
  for (const DeviceQueue::InFlight& entry : in_flight) {
    if (!entry.last || entry.task == nullptr) continue;
    tasks.push_back(entry.task);
    QueuedTask& queued = sent.emplace_back(AsQueued(*entry.task));
    queued.running = entry.task == running;
    queued.at_fault = queued.running && (faulted || !running->cancel.stop.ok());
  }
  const std::vector<TaskDisposition> dispositions =
      DispositionsOf(sent, {death.completed_sequence, death.started_sequence, death.undone});
  SortedTasks sorted;
  for (size_t i = 0; i < tasks.size(); ++i) {
    const bool lost = dispositions[i] == TaskDisposition::kLost;
    if (dispositions[i] == TaskDisposition::kAgain) {
      sorted.again.push_back(tasks[i]);
    } else {
      sorted.ended.emplace_back(
          tasks[i], lost ? LossOf(queue, *tasks[i], death, faulted && tasks[i] == running)
                         : FirstInputError(*tasks[i]));
    }
  }
  return sorted;
}

}  // namespace

void WorkerChanges::PrepareAll(GlobalTransaction& transaction, DeviceQueue& queue) {
  const std::vector<std::shared_ptr<Task>> tasks = queue.preparing.All();
  for (const auto& task : tasks) {
    if (task->queue == &queue) events_->Prepare(transaction, task);
  }
}

void WorkerChanges::WorkerStarted(GlobalTransaction& transaction, DeviceQueue& queue) {
  PrepareAll(transaction, queue);
  transaction.work().Pump(queue);
}

void WorkerChanges::WorkerNotStarted(GlobalTransaction& transaction, DeviceQueue& queue,
                                     const absl::Status& status) {
  const std::vector<std::shared_ptr<Task>> tasks = queue.preparing.All();
  for (const auto& task : tasks) {
    if (task->state == TaskState::kPreparing) events_->EndUnrun(transaction, task, status);
  }
}

// Its empty arenas are released.
void WorkerChanges::WorkerEnds(GlobalTransaction& transaction, DeviceQueue& queue) {
  parts_.memory->arenas().Trim(transaction, queue, 0);
}

void WorkerChanges::WorkerGone(GlobalTransaction& transaction) {
  parts_.memory->Changed(transaction);
}

// Tasks in a worker's queue stay there: they may still end, and their deadlines end them otherwise.
void WorkerChanges::HealthChanged(GlobalTransaction& transaction, int device) {
  if (parts_.health->Serves(device)) return;
  parts_.queues->ForEach(transaction, [&](DeviceQueue& queue) {
    if (queue.device == device) PrepareAll(transaction, queue);
  });
}

void WorkerChanges::WorkerDied(GlobalTransaction& transaction, DeviceQueue& queue,
                               const broker::WorkerDeath& death) {
  const uint64_t record = std::exchange(queue.worker_record, 0);
  queue.sending.recalls.clear();
  ++core_->device_accounts[queue.device].worker_restarts;
  const DeviceQueue::InFlightQueue in_flight = std::exchange(queue.sending.in_flight, {});
  const std::shared_ptr<Task> running = RunningTask(in_flight, death);
  Blame(transaction, queue, death, running);
  for (const DeviceQueue::InFlight& entry : in_flight)
    parts_.task_memory->ReleaseAbandoned(transaction, entry);
  const SortedTasks sorted = SortTasks(queue, in_flight, death, running);
  for (const auto& task : sorted.again) events_->Requeue(transaction, task);
  for (const auto& [task, status] : sorted.ended) events_->Complete(transaction, task, status);
  // Not before: what comes after the first of them may be sent, and committed, before the last is
  // ended, and a successor asks this worker's page what became of that.
  core_->journal_writer->WorkerGone(transaction, queue.tenant, record);
  for (const auto& task : sorted.again) {
    if (!task->cancel.recall.ok() && task->state == TaskState::kWaiting)
      events_->EndUnrun(transaction, task, task->cancel.recall);
  }
  for (const auto& task : sorted.again) events_->Evaluate(transaction, task);
  // Tasks that were only being prepared here go on with a new worker.
  PrepareAll(transaction, queue);
  parts_.memory->Changed(transaction);  // waiters for its arena ask again
  if (!queue.sending.ready.empty()) parts_.starter->Request(transaction, queue);
  queue.killed = false;
  parts_.slices->NoteDemand(queue);
  transaction.work().GiveTurns(queue.device);
}

// Reports the death, and holds it against the task that ran, or else against the device.
void WorkerChanges::Blame(GlobalTransaction& transaction, DeviceQueue& queue,
                          const broker::WorkerDeath& death, const std::shared_ptr<Task>& running) {
  ReportLoss(transaction, queue, death, running);
  if (running == nullptr) {
    if (ReasonOf(death.cause) == v1::ERROR_REASON_WORKER_LOST)
      parts_.health->LostWorker(transaction, queue.device, queue.tenant);
    return;
  }
  // A task that the worker's end cut short has used the device too.
  if (running->timeline.begin_time != SteadyTime()) {
    parts_.queues->Charge(transaction, queue,
                          absl::ToDoubleSeconds(core_->Now() - running->timeline.begin_time));
  }
  ++running->sent.num_deaths;
}

// Not of one that was asked to end: nothing is lost with it.
void WorkerChanges::ReportLoss(TenantTransaction& transaction, const DeviceQueue& queue,
                               const broker::WorkerDeath& death,
                               const std::shared_ptr<Task>& running) {
  const auto& listener = core_->options.worker_lost;
  if (!listener || death.cause.ok() || absl::IsCancelled(death.cause)) return;
  WorkerLoss loss{.device = absl::StrCat("devices/", queue.description.id()),
                  .tenant = queue.tenant,
                  .cause = death.cause,
                  .operation = running != nullptr ? running->label : ""};
  transaction.Defer([&listener, loss = std::move(loss)] { listener(loss); });
}

}  // namespace stride::engine
