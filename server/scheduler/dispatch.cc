// Scheduler: sending prepared tasks to their worker, and what comes back.
#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "absl/hash/hash.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "server/base/crash_point.h"
#include "server/base/error.h"
#include "server/base/surroundings.h"
#include "server/base/system_error.h"
#include "server/ops/bind.h"
#include "server/scheduler/argument_text.h"
#include "server/scheduler/fates.h"
#include "server/scheduler/hazards.h"
#include "server/scheduler/recorder.h"
#include "server/scheduler/scheduler.h"
#include "server/wire/status.h"
#include "server/wire/status_page.h"

namespace stride::scheduler {
namespace {

using wire::AtOrBefore;

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

// Frees the memory of outputs that a task no longer makes.
void DropFresh(absl::Span<const Use> uses) {
  for (const Use& use : uses) {
    if (use.buffer != nullptr && use.fresh) use.buffer->KeepOnly(-1);
  }
}

}  // namespace

bool Scheduler::MayDispatch(const Task& task, const Lane& lane) const {
  for (const auto& before : task.pending) {
    if (before->state != TaskState::kDispatched || before->lane != &lane) return false;
    if (before->num_recalls > 0) return false;
  }
  return true;
}

void Scheduler::PumpSoon(TenantTransaction& transaction, Lane& lane) {
  if (lane.ready.size() < kFullPacket) {
    if (lane.in_flight.size() >= kBusyInFlight) return;
    if (transaction.is_batch() && !lane.in_flight.empty()) {
      transaction.HoldUntilEndOfBatch(lane);
      return;
    }
  }
  Pump(transaction, lane);
}

void Scheduler::SendHeld(TenantTransaction& transaction) {
  for (Lane* lane : transaction.EndBatch()) PumpSoon(transaction, *lane);
}

void Scheduler::Pump(TenantTransaction& transaction, Lane& lane) {
  auto& pumped = transaction.work().pumped;
  if (std::find(pumped.begin(), pumped.end(), &lane) == pumped.end()) pumped.push_back(&lane);
}

void Scheduler::PumpNow(TenantTransaction& transaction, Lane& lane) {
  NoteDemand(lane);
  while (PumpOnce(transaction, lane)) {
  }
  NoteDemand(lane);
  GiveTurns(transaction, lane.device);
}

// Fills and sends one packet. True: there may be more to send.
bool Scheduler::PumpOnce(TenantTransaction& transaction, Lane& lane) {
  if (lane.ready.empty() || lane.yielding) return false;
  lane.packet.Clear();
  double budget = Budget(lane);
  while (!lane.ready.empty() && lane.in_flight.size() < kMaxInFlight && lane.worker != nullptr &&
         lane.packet.bytes().size() < kMaxSubmitBytes) {
    std::shared_ptr<Task> task = lane.ready.front();
    if (absl::Status error = FirstInputError(*task); !error.ok()) {
      EndUnrun(transaction, task, error);
      continue;
    }
    if (!MayDispatch(*task, lane)) {
      Unplace(transaction, *task);
      SetState(transaction, *task, TaskState::kWaiting);
      continue;
    }
    if (task->reads_peers && !HasBlocks(*task, lane)) {
      Unplace(transaction, *task);
      SetState(transaction, *task, TaskState::kWaiting);
      Evaluate(transaction, task);
      continue;
    }
    if (task->plan().task.kind_case() == wire::Task::KIND_NOT_SET) {
      ContentChanges(transaction, *task);
      for (const Use& use : task->uses) use.buffer->KeepOnly(lane.device);
      Complete(transaction, task, absl::OkStatus());
      continue;
    }
    if (budget <= 0) break;
    const wire::Task& bound = BoundTask(*task, lane);
    const size_t size = bound.ByteSizeLong();
    if (size > kMaxTaskBytes) {
      EndUnrun(transaction, task,
               InvalidField(v1::ERROR_REASON_SIZE_LIMIT, "",
                            "the operation is too large for one launch; split it"));
      continue;
    }
    // The exact estimate matters only while other queues wait.
    task->expected_seconds =
        std::isinf(budget) ? task->estimate_seconds : ExpectedSeconds(transaction, *task, lane);
    budget -= task->expected_seconds;
    if (absl::Status lack = BringWhatItNeeds(*task, lane); !lack.ok()) {
      EndUnrun(transaction, task, lack);
      continue;
    }
    AddToPacket(transaction, task, lane, bound, size);
    // Dependents on this queue may go into the same packet.
    const TaskList dependents = task->dependents;
    for (const auto& dependent : dependents) Evaluate(transaction, dependent);
  }
  if (lane.packet.empty()) return false;
  core_->recorder->Commit(transaction);  // a successor must know what may have begun
  STRIDE_CRASH_POINT("scheduler.before_submit");
  // A worker that is gone answers UNAVAILABLE; the report of its death takes these tasks back.
  if (transaction.is_batch()) {  // the batch may be long, and the worker has nothing to do
    lane.worker->Submit(lane.packet).IgnoreError();
    STRIDE_CRASH_POINT("scheduler.after_submit");
  } else {
    lane.worker->SubmitLater(lane.packet).IgnoreError();
    transaction.FlushLater(lane.worker);
  }
  NoteStart(transaction, lane);
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

ops::Rebinder& RebinderFor(const std::shared_ptr<const Planned>& planned, Lane& lane) {
  Lane::Bound& bound = lane.bound[absl::HashOf(planned.get()) % Lane::kNumBound];
  if (bound.planned != planned) {
    bound.rebinder.Use(planned->plan.task);
    // One that this task alone has does not come again, and may hold a client's source.
    bound.planned = planned.use_count() > 1 ? planned : nullptr;
  }
  return bound.rebinder;
}

}  // namespace

const wire::Task& Scheduler::BoundTask(const Task& task, Lane& lane) const {
  absl::InlinedVector<ops::Location, 8> slots;
  slots.reserve(task.uses.size());
  for (const Use& use : task.uses) {
    if (use.buffer == nullptr) {
      slots.push_back({});
      continue;
    }
    const store::Allocation& replica = *BlockFor(task, use, lane);
    slots.push_back({replica.arena->id, replica.offset});
  }
  wire::Task* bound = RebinderFor(task.planned, lane).Bind(slots);
  if (task.module != nullptr) {
    ops::SetModule(bound, task.module->id);
    if (task.plan().code.has_value()) SetByBlocks(bound, task.block_loops.get(), *task.plan().code);
  }
  bound->set_label(task.label);
  uint64_t sequence = lane.next_sequence;
  ForEachFill(task, [&](const store::Buffer&) { ++sequence; });
  bound->set_sequence(sequence);
  return *bound;
}

void Scheduler::AddToPacket(TenantTransaction& transaction, const std::shared_ptr<Task>& task,
                            Lane& lane, const wire::Task& bound, size_t size) {
  task->worker_record = lane.worker_record;
  task->first_sequence = lane.next_sequence;
  ForEachFill(*task, [&](const store::Buffer& buffer) {
    const store::Allocation& replica = buffer.replicas.at(lane.device);
    wire::Task fill;
    fill.set_sequence(lane.next_sequence++);
    fill.mutable_zero_fill()->set_arena(replica.arena->id);
    fill.mutable_zero_fill()->set_offset(replica.offset);
    fill.mutable_zero_fill()->set_size(buffer.size);
    lane.packet.Add(fill);
    lane.in_flight.push_back({fill.sequence(), task, false});
  });
  lane.packet.Add(bound, size);
  lane.in_flight.push_back({lane.next_sequence++, task, true});
  task->last_sequence = lane.next_sequence - 1;

  lane.preparing.Remove(*task);
  auto& ready = lane.ready;
  ready.pop_front();
  task->queued_ready = false;
  ContentChanges(transaction, *task);
  for (const Use& use : task->uses) {
    if (use.buffer == nullptr || !use.write) continue;
    use.buffer->KeepOnly(lane.device);
    ++use.buffer->num_writes;
  }
  task->dispatch_time = core_->Now();
  task->early_error = absl::OkStatus();
  SetState(transaction, *task, TaskState::kDispatched);
}

// An error here is a lack of descriptors. A worker that is gone causes no error: its death takes
// the task back.
absl::Status Scheduler::BringWhatItNeeds(const Task& task, Lane& lane) {
  absl::Status status = MapForTask(task, lane);
  if (!IsLack(status)) status = LoadModule(task.module, lane);
  if (!IsLack(status)) status = LoadModule(task.block_loops, lane);
  if (!IsLack(status) && task.replay != nullptr) status = LoadReplay(task, lane);
  return IsLack(status) ? status : absl::OkStatus();
}

absl::Status Scheduler::MapForTask(const Task& task, Lane& lane) {
  const store::Arena* last = nullptr;
  for (const Use& use : task.uses) {
    if (use.buffer == nullptr) continue;
    const std::shared_ptr<store::Arena>& arena = BlockFor(task, use, lane)->arena;
    if (std::exchange(last, arena.get()) == arena.get()) continue;
    const bool peer = use.buffer->replicas.count(lane.device) == 0;
    if (absl::Status status = MapFor(lane, arena, peer); !status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status Scheduler::LoadModule(const std::shared_ptr<const broker::CompiledModule>& module,
                                   Lane& lane) {
  if (module == nullptr || !lane.loaded.insert(module->id).second) return absl::OkStatus();
  auto loaded = [this, lane = &lane, id = module->id](absl::StatusOr<wire::ModuleLoaded> result) {
    TenantTransaction transaction(*core_, lane->tenant);
    // The worker is gone: its successor loads the module again.
    if (!result.ok()) return;
    absl::Status status = wire::ToStatus(result->status());
    if (!status.ok()) lane->load_errors[id] = status;
    lane->attributes[id] = *std::move(result);
    ++lane->num_told;
    if (lane->num_asking > 0) WakeWaiters(transaction);
  };
  absl::Status sent = lane.worker->LoadModule(*module, loaded);
  if (IsLack(sent)) lane.loaded.erase(module->id);
  return sent;
}

void Scheduler::Charge(TenantTransaction& transaction, Lane& lane, double run_seconds) {
  if (lane.description.kind() == "cpu") run_seconds = lane.processor_time.Take(run_seconds);
  core_->accounts->AddDeviceTime(lane.tenant, lane.device, run_seconds);
}

void Scheduler::ChargeWorkers(TenantTransaction& transaction, const TenantId& tenant) {
  lanes_.ForEachOf(transaction, tenant, [&](Lane& lane) {
    if (lane.worker != nullptr) Charge(transaction, lane, 0);
  });
}

void Scheduler::Printed(TenantTransaction& transaction, Lane& lane, uint64_t sequence,
                        std::string_view text, uint64_t dropped_lines) {
  for (const Lane::InFlight& entry : lane.in_flight) {
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

void Scheduler::TasksDone(TenantTransaction& transaction, Lane& lane, const broker::Worker* worker,
                          absl::Span<const wire::TaskResult> results) {
  if (lane.worker.get() != worker) return;
  STRIDE_CRASH_POINT("scheduler.before_completion");
  const OneMoment moment;
  double device_seconds = 0;
  for (const wire::TaskResult& result : results)
    device_seconds += std::max(0.0, result.run_seconds());
  Charge(transaction, lane, device_seconds);
  ChargeTurn(lane, device_seconds);
  transaction.ReserveDeferred(results.size());
  for (const wire::TaskResult& result : results) {
    if (lane.in_flight.empty() || lane.in_flight.front().sequence != result.sequence()) {
      lane.worker->Kill(
          MakeError(absl::StatusCode::kAborted, v1::ERROR_REASON_WORKER_LOST,
                    "the device process gave an answer out of order and was replaced"));
      return;
    }
    // A worker confirms a cancelled task before it sends the task's result, so this one has begun.
    if (lane.recalls.count(result.sequence()) > 0)
      TasksCancelled(transaction, lane, worker, result.sequence(), /*taken=*/false);
    Lane::InFlight entry = std::move(lane.in_flight.front());
    lane.in_flight.pop_front();
    ReleaseHeld(transaction, entry);
    if (entry.task == nullptr) continue;
    entry.task->run_seconds += result.run_seconds();
    if (entry.last) {
      TaskEnded(transaction, lane, entry.task, result);
    } else if (result.status().code() != 0) {
      entry.task->early_error = TaskStatus(*entry.task, lane, result.status());
    }
  }
  MemoryChanged(transaction);
  NoteStart(transaction, lane);
  Pump(transaction, lane);
  Settle(transaction);  // here rather than at the end, so that `moment` saves readings of the clock
  if (!lane.yielding || !lane.in_flight.empty()) return;
  transaction.Defer([this, &lane] {
    GlobalTransaction transaction(*core_);
    YieldIfDone(transaction, lane);
  });
}

double Scheduler::ExpectedSeconds(TenantTransaction& transaction, const Task& task,
                                  const Lane& lane) const {
  return Mine(transaction, task.tenant)
      .model.Estimate(lane.description, CodeKeyOf(task), task.plan());
}

void Scheduler::TaskEnded(TenantTransaction& transaction, Lane& lane,
                          const std::shared_ptr<Task>& task, const wire::TaskResult& result) {
  absl::Status status = task->early_error;
  if (status.ok()) status = TaskStatus(*task, lane, result.status());
  // It followed a task that failed after this one was sent: what it computed is from spoiled input.
  if (absl::Status error = FirstInputError(*task); status.ok() && !error.ok()) status = error;
  // The device measured it best: what was seen of its start came no earlier than that.
  SteadyTime begin = std::max(task->dispatch_time, core_->Now() - absl::Seconds(task->run_seconds));
  task->begin_time = task->begin_time == SteadyTime() ? begin : std::min(task->begin_time, begin);
  transaction.ChangeOf(lane.device).busy_seconds += result.run_seconds();
  if (status.ok()) {
    health_.Worked(transaction, lane.device);
    // A run by blocks says nothing of the operation's own code, and the first on a device takes
    // longer: the next operation of a chain would go to a device that was not measured.
    const bool by_blocks =
        task->block_loops != nullptr || (task->ready != nullptr && task->ready->elements_by_blocks);
    if (!by_blocks) {
      Mine(transaction, task->tenant)
          .model.Record(lane.description, CodeKeyOf(*task), task->plan(), result.run_seconds());
    }
  }
  Complete(transaction, task, status);
}

absl::Status Scheduler::TaskStatus(const Task& task, const Lane& lane,
                                   const wire::Status& status) const {
  if (status.code() == 0) return absl::OkStatus();
  absl::Status cause = wire::ToStatus(status);
  std::vector<std::shared_ptr<const broker::CompiledModule>> modules = {task.module,
                                                                        task.block_loops};
  if (task.ready != nullptr) modules = task.ready->modules;
  for (const auto& module : modules) {
    if (module == nullptr) continue;
    auto it = lane.load_errors.find(module->id);
    if (it != lane.load_errors.end()) cause = it->second;
  }
  if (wire::ReasonFor(cause.code()) == v1::ERROR_REASON_KERNEL_FAULT)
    return WithArguments(cause, task);
  absl::string_view text = cause.message();
  const bool linear_algebra = ReasonOf(cause) == v1::ERROR_REASON_LINEAR_ALGEBRA;
  const v1::ErrorReason reason =
      linear_algebra ? v1::ERROR_REASON_LINEAR_ALGEBRA : wire::ReasonFor(cause.code());
  return MakeError(cause.code(), reason, {text.data(), text.size()}, {{"operation", task.label}});
}

void Scheduler::WorkerDied(GlobalTransaction& transaction, Lane& lane, const broker::Worker* worker,
                           const broker::WorkerDeath& death) {
  if (lane.worker.get() != worker) return;
  lane.worker = nullptr;
  lane.yielding = false;
  ForgetWorker(lane);
  const uint64_t record = std::exchange(lane.worker_record, 0);
  lane.recalls.clear();
  ++account(lane.device).worker_restarts;
  Lane::InFlightQueue in_flight = std::exchange(lane.in_flight, {});

  // The task that was running: the one named, else the first that was begun and had not ended.
  bool faulted =
      death.faulting_sequence != 0 || ReasonOf(death.cause) == v1::ERROR_REASON_KERNEL_FAULT;
  std::shared_ptr<Task> culprit;
  for (const Lane::InFlight& entry : in_flight) {
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
  TellLoss(transaction, lane, death, culprit);
  if (culprit == nullptr && ReasonOf(death.cause) == v1::ERROR_REASON_WORKER_LOST)
    health_.LostWorker(transaction, lane.device, lane.tenant);
  // A task that the worker's end cut short has used the device too.
  if (culprit != nullptr && culprit->begin_time != SteadyTime()) {
    Charge(transaction, lane, absl::ToDoubleSeconds(core_->Now() - culprit->begin_time));
  }
  if (culprit != nullptr) ++culprit->num_deaths;
  std::vector<std::shared_ptr<Task>> tasks;
  std::vector<QueuedTask> queue;
  for (const Lane::InFlight& entry : in_flight) {
    ReleaseHeld(transaction, entry);
    if (!entry.last || entry.task == nullptr) continue;
    tasks.push_back(entry.task);
    QueuedTask& queued = queue.emplace_back(AsQueued(*entry.task));
    queued.running = entry.task == culprit;
    queued.at_fault = queued.running && (faulted || !culprit->stop.ok());
  }
  const std::vector<Fate> fates =
      FatesOf(queue, {death.completed_sequence, death.started_sequence, death.undone});
  std::vector<std::shared_ptr<Task>> again;
  std::vector<std::pair<std::shared_ptr<Task>, absl::Status>> ended;
  for (size_t i = 0; i < tasks.size(); ++i) {
    const bool lost = fates[i] == Fate::kLost;
    if (fates[i] == Fate::kAgain) {
      again.push_back(tasks[i]);
    } else {
      ended.emplace_back(tasks[i],
                         lost ? LossOf(lane, *tasks[i], death, faulted && tasks[i] == culprit)
                              : FirstInputError(*tasks[i]));
    }
  }
  for (const auto& task : again) TakeBack(transaction, task);
  for (const auto& [task, status] : ended) Complete(transaction, task, status);
  // Not before: what comes after the first of them may be sent, and committed, before the last is
  // ended, and a successor asks this worker's page what became of that.
  core_->recorder->WorkerGone(transaction, lane.tenant, record);
  for (const auto& task : again) {
    if (!task->recall.ok() && task->state == TaskState::kWaiting)
      EndUnrun(transaction, task, task->recall);
  }
  for (const auto& task : again) Evaluate(transaction, task);
  // Tasks that were only being prepared here go on with a new worker.
  PrepareAll(transaction, lane);
  MemoryChanged(transaction);  // waiters for its arena ask again
  if (!lane.ready.empty()) StartWorker(transaction, lane);
  lane.killed = false;
  NoteDemand(lane);
  GiveTurns(transaction, lane.device);
}

// Not of one that was asked to end: nothing is lost with it.
void Scheduler::TellLoss(TenantTransaction& transaction, const Lane& lane,
                         const broker::WorkerDeath& death, const std::shared_ptr<Task>& running) {
  const auto& listener = core_->options.worker_lost;
  if (!listener || death.cause.ok() || absl::IsCancelled(death.cause)) return;
  WorkerLoss loss{.device = absl::StrCat("devices/", lane.description.id()),
                  .tenant = lane.tenant,
                  .cause = death.cause,
                  .operation = running != nullptr ? running->label : ""};
  transaction.Defer([&listener, loss = std::move(loss)] { listener(loss); });
}

// The launch of a task that was given up is over.
void Scheduler::ReleaseHeld(TenantTransaction& transaction, const Lane::InFlight& entry) {
  if (entry.held.empty()) return;
  for (const Use& use : entry.held) {
    if (use.buffer != nullptr) --use.buffer->num_holders;
  }
  DropFresh(entry.held);
  MemoryChanged(transaction);
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

}  // namespace stride::scheduler
