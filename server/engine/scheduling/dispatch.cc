// Scheduler: sending prepared tasks to their worker, and what comes back.
#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "absl/hash/hash.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "server/base/crash_point.h"
#include "server/base/environment.h"
#include "server/base/error.h"
#include "server/base/system_error.h"
#include "server/engine/core/argument_text.h"
#include "server/engine/persistence/journal_writer.h"
#include "server/engine/scheduling/hazards.h"
#include "server/engine/scheduling/scheduler.h"
#include "server/engine/scheduling/task_dispositions.h"
#include "server/ops/bind.h"
#include "server/wire/status.h"
#include "server/wire/status_page.h"

namespace stride::engine {
namespace {

using wire::AtOrBefore;

// The first task in flight begins within microseconds, or after the worker has loaded its module.
constexpr absl::Duration kStartPoll = absl::Milliseconds(2);
// Tasks in one worker's queue: enough that it never waits for us, few enough that most can still
// go to another device.
constexpr size_t kMaxInFlight = 256;
// With so many there, some of them short, the next answer comes before the worker has nothing to
// do.
constexpr size_t kBusyInFlight = 8;
constexpr size_t kFullPacket = 32;            // tasks that are worth a packet of their own
constexpr size_t kMaxSubmitBytes = 64 << 10;  // a packet has 128 KiB
constexpr size_t kMaxTaskBytes = 56 << 10;

QueuedTask AsQueued(const Task& task) {
  QueuedTask queued{.first_sequence = task.first_sequence,
                    .last_sequence = task.last_sequence,
                    .repeatable = IsRepeatable(task) && task.num_deaths < kMaxTaskAttempts,
                    .cancelled = !task.recall.ok()};
  for (const Use& use : task.uses) {
    queued.uses.push_back({.buffer = reinterpret_cast<uintptr_t>(use.buffer.get()),
                           .write = use.write,
                           .fresh = use.fresh});
  }
  return queued;
}

// The status of the task that was running when its worker died.
absl::Status LossOf(const DeviceQueue& queue, const Task& task, const broker::WorkerDeath& death,
                    bool faulted) {
  if (faulted) return WithArguments(death.cause, task);
  if (!task.stop.ok()) return task.stop;
  // The worker was killed for a task that had just ended, and this task cannot be repeated.
  if (queue.killed) {
    return MakeError(absl::StatusCode::kAborted, v1::ERROR_REASON_WORKER_LOST,
                     "the device process was ended for another operation while this one ran");
  }
  return death.cause;
}

// Frees the memory of outputs that a task no longer makes.
void DropFresh(absl::Span<const Use> uses) {
  for (const Use& use : uses) {
    if (use.buffer != nullptr && use.fresh) use.buffer->KeepOnly(-1);
  }
}

}  // namespace

void Scheduler::PumpSoon(TenantTransaction& transaction, DeviceQueue& queue) {
  if (queue.ready.size() < kFullPacket) {
    if (queue.in_flight.size() >= kBusyInFlight) return;
    if (transaction.is_batch() && !queue.in_flight.empty()) {
      transaction.HoldUntilEndOfBatch(queue);
      return;
    }
  }
  transaction.work().Pump(queue);
}

void Scheduler::FlushBatch(TenantTransaction& transaction) {
  for (DeviceQueue* queue : transaction.EndBatch()) PumpSoon(transaction, *queue);
}

void Scheduler::PumpNow(TenantTransaction& transaction, DeviceQueue& queue) {
  slices_.NoteDemand(queue);
  while (PumpOnce(transaction, queue)) {
  }
  slices_.NoteDemand(queue);
  NoteStart(transaction, queue);
  transaction.work().GiveTurns(queue.device);
}

// Reads on the status page whether the first task in flight has begun, and notifies its observer.
// Everything before it has been reported, so it begins as soon as the worker, or on a GPU the
// stream, reaches it.
void Scheduler::NoteStart(TenantTransaction& transaction, DeviceQueue& queue) {
  cancellation_.BeginGrace(queue);
  if (queue.worker == nullptr || queue.in_flight.empty()) return;
  const DeviceQueue::InFlight& first = queue.in_flight.front();
  Task* task = first.task.get();
  if (task == nullptr || task->observer == nullptr || task->begin_time != SteadyTime()) return;
  if (AtOrBefore(first.sequence, queue.worker->progress().started_sequence)) {
    task->begin_time = core_->Now();
    transaction.Defer([observer = *task->observer] { observer(TaskState::kDispatched); });
    return;
  }
  if (std::exchange(queue.watching_start, true)) return;
  core_->timer.At(core_->Now() + kStartPoll, [this, queue = &queue] {
    TenantTransaction transaction(*core_, queue->tenant);
    queue->watching_start = false;
    NoteStart(transaction, *queue);
  });
}

// Fills and sends one packet. True: there may be more to send.
bool Scheduler::PumpOnce(TenantTransaction& transaction, DeviceQueue& queue) {
  if (queue.ready.empty() || queue.start.yields()) return false;
  queue.packet.Clear();
  double budget = slices_.Budget(queue);
  while (!queue.ready.empty() && queue.in_flight.size() < kMaxInFlight && queue.worker != nullptr &&
         queue.packet.bytes().size() < kMaxSubmitBytes) {
    std::shared_ptr<Task> task = queue.ready.front();
    if (absl::Status error = FirstInputError(*task); !error.ok()) {
      EndUnrun(transaction, task, error);
      continue;
    }
    if (!DependencyTracker::MayFollowIn(queue, *task)) {
      Unplace(transaction, *task);
      SetState(transaction, *task, TaskState::kWaiting);
      continue;
    }
    if (task->reads_peers && !memory_.peers().HasBlocks(*task, queue)) {
      Unplace(transaction, *task);
      SetState(transaction, *task, TaskState::kWaiting);
      Evaluate(transaction, task);
      continue;
    }
    if (task->plan().task.kind_case() == wire::Task::KIND_NOT_SET) {
      memory_.copies().ContentChanges(transaction, *task);
      for (const Use& use : task->uses) use.buffer->KeepOnly(queue.device);
      Complete(transaction, task, absl::OkStatus());
      continue;
    }
    if (budget <= 0) break;
    const wire::Task& bound = BoundTask(*task, queue);
    const size_t size = bound.ByteSizeLong();
    if (size > kMaxTaskBytes) {
      EndUnrun(transaction, task,
               InvalidField(v1::ERROR_REASON_SIZE_LIMIT, "",
                            "the operation is too large for one launch; split it"));
      continue;
    }
    // The exact estimate matters only while other queues wait.
    task->expected_seconds = std::isinf(budget)
                                 ? task->estimate_seconds
                                 : placer_.ExpectedSeconds(transaction, *task, queue);
    budget -= task->expected_seconds;
    if (absl::Status lack = BringWhatItNeeds(*task, queue); !lack.ok()) {
      EndUnrun(transaction, task, lack);
      continue;
    }
    AddToPacket(transaction, task, queue, bound, size);
    // Dependents on this queue may go into the same packet.
    const TaskList dependents = task->dependents;
    for (const auto& dependent : dependents) Evaluate(transaction, dependent);
  }
  if (queue.packet.empty()) return false;
  core_->journal_writer->Commit(transaction);  // a successor must know what may have begun
  STRIDE_CRASH_POINT("scheduler.before_submit");
  // A worker that is gone answers UNAVAILABLE; the report of its death takes these tasks back.
  if (transaction.is_batch()) {  // the batch may be long, and the worker has nothing to do
    queue.worker->Submit(queue.packet).IgnoreError();
    STRIDE_CRASH_POINT("scheduler.after_submit");
  } else {
    queue.worker->SubmitLater(queue.packet).IgnoreError();
    transaction.FlushLater(queue.worker);
  }
  return true;
}

namespace {

// Calls `take` for each output buffer that is cleared before the task's own launch.
template <typename Take>
void ForEachFill(const Task& task, Take take) {
  const size_t num_inputs = task.uses.size() - task.plan().outputs.size();
  for (int output : task.plan().zeroed_outputs) {
    const store::Buffer& buffer = *task.uses[num_inputs + output].buffer;
    if (buffer.size > 0) take(buffer);
  }
}

ops::Rebinder& RebinderFor(const std::shared_ptr<const Planned>& planned, DeviceQueue& queue) {
  DeviceQueue::Bound& bound = queue.bound[absl::HashOf(planned.get()) % DeviceQueue::kNumBound];
  if (bound.planned != planned) {
    bound.rebinder.Use(planned->plan.task);
    // One that this task alone has does not come again, and may hold a client's source.
    bound.planned = planned.use_count() > 1 ? planned : nullptr;
  }
  return bound.rebinder;
}

}  // namespace

const wire::Task& Scheduler::BoundTask(const Task& task, DeviceQueue& queue) const {
  absl::InlinedVector<ops::Location, 8> slots;
  slots.reserve(task.uses.size());
  for (const Use& use : task.uses) {
    if (use.buffer == nullptr) {
      slots.push_back({});
      continue;
    }
    const store::Allocation& replica = *memory_.peers().BlockFor(task, use, queue);
    slots.push_back({replica.arena->id, replica.offset});
  }
  wire::Task* bound = RebinderFor(task.planned, queue).Bind(slots);
  if (task.module != nullptr) {
    ops::SetModule(bound, task.module->id);
    if (task.plan().code.has_value()) SetByBlocks(bound, task.block_loops.get(), *task.plan().code);
  }
  bound->set_label(task.label);
  uint64_t sequence = queue.next_sequence;
  ForEachFill(task, [&](const store::Buffer&) { ++sequence; });
  bound->set_sequence(sequence);
  return *bound;
}

void Scheduler::AddToPacket(TenantTransaction& transaction, const std::shared_ptr<Task>& task,
                            DeviceQueue& queue, const wire::Task& bound, size_t size) {
  task->worker_record = queue.worker_record;
  task->first_sequence = queue.next_sequence;
  ForEachFill(*task, [&](const store::Buffer& buffer) {
    const store::Allocation& replica = buffer.replicas.at(queue.device);
    wire::Task fill;
    fill.set_sequence(queue.next_sequence++);
    fill.mutable_zero_fill()->set_arena(replica.arena->id);
    fill.mutable_zero_fill()->set_offset(replica.offset);
    fill.mutable_zero_fill()->set_size(buffer.size);
    queue.packet.Add(fill);
    queue.in_flight.push_back({fill.sequence(), task, false});
  });
  queue.packet.Add(bound, size);
  queue.in_flight.push_back({queue.next_sequence++, task, true});
  task->last_sequence = queue.next_sequence - 1;

  queue.preparing.Remove(*task);
  auto& ready = queue.ready;
  ready.pop_front();
  task->queued_ready = false;
  memory_.copies().ContentChanges(transaction, *task);
  for (const Use& use : task->uses) {
    if (use.buffer == nullptr || !use.write) continue;
    use.buffer->KeepOnly(queue.device);
    ++use.buffer->num_writes;
  }
  task->dispatch_time = core_->Now();
  task->early_error = absl::OkStatus();
  SetState(transaction, *task, TaskState::kDispatched);
}

// An error here is a lack of descriptors. A worker that is gone causes no error: its death takes
// the task back.
absl::Status Scheduler::BringWhatItNeeds(const Task& task, DeviceQueue& queue) {
  absl::Status status = MapForTask(task, queue);
  if (!IsLack(status)) status = LoadModule(task.module, queue);
  if (!IsLack(status)) status = LoadModule(task.block_loops, queue);
  if (!IsLack(status) && task.program_launch != nullptr) status = LoadProgram(task, queue);
  return IsLack(status) ? status : absl::OkStatus();
}

absl::Status Scheduler::MapForTask(const Task& task, DeviceQueue& queue) {
  const store::Arena* last = nullptr;
  for (const Use& use : task.uses) {
    if (use.buffer == nullptr) continue;
    const std::shared_ptr<store::Arena>& arena = memory_.peers().BlockFor(task, use, queue)->arena;
    if (std::exchange(last, arena.get()) == arena.get()) continue;
    const bool peer = use.buffer->replicas.count(queue.device) == 0;
    if (absl::Status status = MapArena(queue, arena, peer); !status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status Scheduler::LoadModule(const std::shared_ptr<const broker::CompiledModule>& module,
                                   DeviceQueue& queue) {
  if (module == nullptr || !queue.loaded.insert(module->id).second) return absl::OkStatus();
  auto loaded = [this, queue = &queue, id = module->id](absl::StatusOr<wire::ModuleLoaded> result) {
    TenantTransaction transaction(*core_, queue->tenant);
    // The worker is gone: its successor loads the module again.
    if (!result.ok()) return;
    absl::Status status = wire::ToStatus(result->status());
    if (!status.ok()) queue->load_errors[id] = status;
    queue->attributes[id] = *std::move(result);
    ++queue->num_told;
    if (queue->num_asking > 0) transaction.WakeWaiters();
  };
  absl::Status sent = queue.worker->LoadModule(*module, loaded);
  if (IsLack(sent)) queue.loaded.erase(module->id);
  return sent;
}

void Scheduler::ChargeWorkers(TenantTransaction& transaction, const TenantId& tenant) {
  queues_.ForEachOf(transaction, tenant, [&](DeviceQueue& queue) {
    if (queue.worker != nullptr) queues_.Charge(transaction, queue, 0);
  });
}

void Scheduler::Printed(TenantTransaction& transaction, DeviceQueue& queue, uint64_t sequence,
                        std::string_view text, uint64_t dropped_lines) {
  for (const DeviceQueue::InFlight& entry : queue.in_flight) {
    if (entry.sequence < sequence) continue;
    const std::shared_ptr<Task>& task = entry.launched();
    if (entry.sequence > sequence || task == nullptr) return;
    if (task->session != nullptr) {
      task->session->printed.Append(text, dropped_lines, task->session->control.account());
    } else {
      if (task->printed == nullptr) task->printed = std::make_unique<PrintedText>();
      task->printed->Append(text, dropped_lines, kMaxPrintedBytes);
    }
    return;
  }
}

void Scheduler::TasksDone(TenantTransaction& transaction, DeviceQueue& queue,
                          absl::Span<const wire::TaskResult> results) {
  STRIDE_CRASH_POINT("scheduler.before_completion");
  const FrozenClock moment;
  double device_seconds = 0;
  for (const wire::TaskResult& result : results)
    device_seconds += std::max(0.0, result.run_seconds());
  queues_.Charge(transaction, queue, device_seconds);
  slices_.Charge(queue, device_seconds);
  transaction.ReserveDeferred(results.size());
  for (const wire::TaskResult& result : results) {
    if (queue.in_flight.empty() || queue.in_flight.front().sequence != result.sequence()) {
      queue.worker->Kill(
          MakeError(absl::StatusCode::kAborted, v1::ERROR_REASON_WORKER_LOST,
                    "the device process gave an answer out of order and was replaced"));
      return;
    }
    // A worker confirms a cancelled task before it sends the task's result, so this one has begun.
    if (queue.recalls.count(result.sequence()) > 0)
      cancellation_.Answered(transaction, queue, result.sequence(), /*taken=*/false);
    DeviceQueue::InFlight entry = std::move(queue.in_flight.front());
    queue.in_flight.pop_front();
    ReleaseHeld(transaction, entry);
    if (entry.task == nullptr) continue;
    entry.task->run_seconds += result.run_seconds();
    if (entry.last) {
      TaskEnded(transaction, queue, entry.task, result);
    } else if (result.status().code() != 0) {
      entry.task->early_error = TaskStatus(*entry.task, queue, result.status());
    }
  }
  memory_.Changed(transaction);
  transaction.work().Pump(queue);
  Settle(transaction);  // here rather than at the end, so that `moment` saves readings of the clock
}

void Scheduler::TaskEnded(TenantTransaction& transaction, DeviceQueue& queue,
                          const std::shared_ptr<Task>& task, const wire::TaskResult& result) {
  absl::Status status = task->early_error;
  if (status.ok()) status = TaskStatus(*task, queue, result.status());
  // It followed a task that failed after this one was sent: what it computed is from spoiled input.
  if (absl::Status error = FirstInputError(*task); status.ok() && !error.ok()) status = error;
  // The device measured it best: what was seen of its start came no earlier than that.
  SteadyTime begin = std::max(task->dispatch_time, core_->Now() - absl::Seconds(task->run_seconds));
  task->begin_time = task->begin_time == SteadyTime() ? begin : std::min(task->begin_time, begin);
  transaction.ChangeOf(queue.device).busy_seconds += result.run_seconds();
  if (status.ok()) {
    health_.Worked(transaction, queue.device);
    // A run by blocks says nothing of the operation's own code, and the first on a device takes
    // longer: the next operation of a chain would go to a device that was not measured.
    const bool by_blocks = task->block_loops != nullptr ||
                           (task->compiled != nullptr && task->compiled->elements_by_blocks);
    if (!by_blocks) placer_.Ran(transaction, *task, queue, result.run_seconds());
  }
  Complete(transaction, task, status);
}

absl::Status Scheduler::TaskStatus(const Task& task, const DeviceQueue& queue,
                                   const wire::Status& status) const {
  if (status.code() == 0) return absl::OkStatus();
  absl::Status cause = wire::ToStatus(status);
  std::vector<std::shared_ptr<const broker::CompiledModule>> modules = {task.module,
                                                                        task.block_loops};
  if (task.compiled != nullptr) modules = task.compiled->modules;
  for (const auto& module : modules) {
    if (module == nullptr) continue;
    auto it = queue.load_errors.find(module->id);
    if (it != queue.load_errors.end()) cause = it->second;
  }
  if (wire::ReasonFor(cause.code()) == v1::ERROR_REASON_KERNEL_FAULT)
    return WithArguments(cause, task);
  absl::string_view text = cause.message();
  const bool linear_algebra = ReasonOf(cause) == v1::ERROR_REASON_LINEAR_ALGEBRA;
  const v1::ErrorReason reason =
      linear_algebra ? v1::ERROR_REASON_LINEAR_ALGEBRA : wire::ReasonFor(cause.code());
  return MakeError(cause.code(), reason, {text.data(), text.size()}, {{"operation", task.label}});
}

void Scheduler::WorkerDied(GlobalTransaction& transaction, DeviceQueue& queue,
                           const broker::WorkerDeath& death) {
  const uint64_t record = std::exchange(queue.worker_record, 0);
  queue.recalls.clear();
  ++account(queue.device).worker_restarts;
  DeviceQueue::InFlightQueue in_flight = std::exchange(queue.in_flight, {});

  // The task that was running: the one named, else the first that was begun and had not ended.
  bool faulted =
      death.faulting_sequence != 0 || ReasonOf(death.cause) == v1::ERROR_REASON_KERNEL_FAULT;
  std::shared_ptr<Task> culprit;
  for (const DeviceQueue::InFlight& entry : in_flight) {
    if (entry.launched() == nullptr) continue;
    bool named = entry.sequence == death.faulting_sequence;
    bool running = death.faulting_sequence == 0 &&
                   !AtOrBefore(entry.sequence, death.completed_sequence) &&
                   AtOrBefore(entry.sequence, death.started_sequence);
    if (named || running) {
      culprit = entry.launched();
      break;
    }
  }
  ReportLoss(transaction, queue, death, culprit);
  if (culprit == nullptr && ReasonOf(death.cause) == v1::ERROR_REASON_WORKER_LOST)
    health_.LostWorker(transaction, queue.device, queue.tenant);
  // A task that the worker's end cut short has used the device too.
  if (culprit != nullptr && culprit->begin_time != SteadyTime()) {
    queues_.Charge(transaction, queue, absl::ToDoubleSeconds(core_->Now() - culprit->begin_time));
  }
  if (culprit != nullptr) ++culprit->num_deaths;
  std::vector<std::shared_ptr<Task>> tasks;
  std::vector<QueuedTask> sent;
  for (const DeviceQueue::InFlight& entry : in_flight) {
    ReleaseHeld(transaction, entry);
    if (!entry.last || entry.task == nullptr) continue;
    tasks.push_back(entry.task);
    QueuedTask& queued = sent.emplace_back(AsQueued(*entry.task));
    queued.running = entry.task == culprit;
    queued.at_fault = queued.running && (faulted || !culprit->stop.ok());
  }
  const std::vector<TaskDisposition> dispositions =
      DispositionsOf(sent, {death.completed_sequence, death.started_sequence, death.undone});
  std::vector<std::shared_ptr<Task>> again;
  std::vector<std::pair<std::shared_ptr<Task>, absl::Status>> ended;
  for (size_t i = 0; i < tasks.size(); ++i) {
    const bool lost = dispositions[i] == TaskDisposition::kLost;
    if (dispositions[i] == TaskDisposition::kAgain) {
      again.push_back(tasks[i]);
    } else {
      ended.emplace_back(tasks[i],
                         lost ? LossOf(queue, *tasks[i], death, faulted && tasks[i] == culprit)
                              : FirstInputError(*tasks[i]));
    }
  }
  for (const auto& task : again) TakeBack(transaction, task);
  for (const auto& [task, status] : ended) Complete(transaction, task, status);
  // Not before: what comes after the first of them may be sent, and committed, before the last is
  // ended, and a successor asks this worker's page what became of that.
  core_->journal_writer->WorkerGone(transaction, queue.tenant, record);
  for (const auto& task : again) {
    if (!task->recall.ok() && task->state == TaskState::kWaiting)
      EndUnrun(transaction, task, task->recall);
  }
  for (const auto& task : again) Evaluate(transaction, task);
  // Tasks that were only being prepared here go on with a new worker.
  PrepareAll(transaction, queue);
  memory_.Changed(transaction);  // waiters for its arena ask again
  if (!queue.ready.empty()) starter_.Request(transaction, queue);
  queue.killed = false;
  slices_.NoteDemand(queue);
  transaction.work().GiveTurns(queue.device);
}

// Not of one that was asked to end: nothing is lost with it.
void Scheduler::ReportLoss(TenantTransaction& transaction, const DeviceQueue& queue,
                           const broker::WorkerDeath& death, const std::shared_ptr<Task>& running) {
  const auto& listener = core_->options.worker_lost;
  if (!listener || death.cause.ok() || absl::IsCancelled(death.cause)) return;
  WorkerLoss loss{.device = absl::StrCat("devices/", queue.description.id()),
                  .tenant = queue.tenant,
                  .cause = death.cause,
                  .operation = running != nullptr ? running->label : ""};
  transaction.Defer([&listener, loss = std::move(loss)] { listener(loss); });
}

// The launch of a task that was given up is over.
void Scheduler::ReleaseHeld(TenantTransaction& transaction, const DeviceQueue::InFlight& entry) {
  if (entry.held.empty()) return;
  for (const Use& use : entry.held) {
    if (use.buffer != nullptr) --use.buffer->pin_count;
  }
  DropFresh(entry.held);
  memory_.Changed(transaction);
}

// The task is not in its worker's queue any more, and nothing of it runs there.
void Scheduler::TakeBack(TenantTransaction& transaction, const std::shared_ptr<Task>& task) {
  DropFresh(task->uses);
  LeaveQueue(transaction, task);
}

// The task waits again, as if it had never been sent.
void Scheduler::LeaveQueue(TenantTransaction& transaction, const std::shared_ptr<Task>& task) {
  Unplace(transaction, *task);
  task->run_seconds = 0;
  task->begin_time = SteadyTime();
  task->recall_asked = task->recall_refused = task->grace_begun = false;
  task->num_recalls = 0;
  SetState(transaction, *task, TaskState::kWaiting);
  // Dependents prepared to follow it there wait for it again: no input exists yet that could be
  // moved.
  for (const auto& dependent : task->dependents) {
    if (dependent->state == TaskState::kPreparing) TakeBack(transaction, dependent);
  }
}

}  // namespace stride::engine
