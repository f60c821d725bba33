// Scheduler: start and end of the device queues' workers.
#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/base/error.h"
#include "server/base/system_error.h"
#include "server/scheduler/recorder.h"
#include "server/scheduler/scheduler.h"
#include "server/scheduler/start_retry.h"

namespace stride::scheduler {
namespace {

// Workers of a crowded device. A start on an H100 takes 0.3 s next to 12 contexts, 0.4 s next to 32
// and 1 s next to 100 (docs/decisions/0027).
constexpr int kMostInACrowd = 16;
// Workers beyond a device's bound that end each second: the driver ends 10 contexts a second, and
// starts wait for it.
constexpr int kMostEndsAtOnce = 8;

// The error for a lack of a machine's resource has the resource's name; that for device memory has
// none.
WorkerSeats::Lack LackOf(const absl::Status& status) {
  return MetadataOf(status, "resource").empty() ? WorkerSeats::Lack::kDevice
                                                : WorkerSeats::Lack::kMachine;
}

}  // namespace

bool Scheduler::HaveWorker(TenantTransaction& transaction, Lane& lane) {
  if (lane.worker != nullptr) return true;
  StartWorker(transaction, lane);
  return false;
}

// The start waits in line with others; a global transaction lets it begin.
void Scheduler::StartWorker(TenantTransaction& transaction, Lane& lane) {
  if (std::exchange(lane.starting, true)) return;
  lane.num_starts = 0;
  lane.first_start = core_->Now();
  if (GlobalTransaction* global = transaction.global()) {
    WaitForWorker(*global, lane);
    return;
  }
  transaction.Defer([this, &lane] {
    GlobalTransaction transaction(*core_);
    WaitForWorker(transaction, lane);
  });
}

void Scheduler::WaitForWorker(GlobalTransaction& transaction, Lane& lane) {
  if (!lane.starting || lane.worker != nullptr) return;
  seats_.Wait(lane.seat, core_->Now());
  BeginStarts(transaction);
}

// Starts the workers that may start now, and ends idle ones for those that wait only for room.
void Scheduler::BeginStarts(GlobalTransaction& transaction) {
  if (ending_) return;
  const SteadyTime now = core_->Now();
  for (;;) {
    while (WorkerSeats::Seat* seat = seats_.Begin(now)) TryStart(transaction, *seat->lane);
    bool for_any = false;
    const WorkerSeats::Seat* blocked = seats_.Blocked(now, &for_any);
    if (blocked == nullptr) break;
    if (!GiveWay(transaction, for_any ? std::nullopt : std::optional<int>(blocked->device))) break;
  }
  if (!seats_.waiting()) StopYielding(transaction);
  const SteadyTime next = seats_.next_try(now);
  if (next >= next_start_look_) return;
  next_start_look_ = next;
  core_->timer.At(next, [this] {
    GlobalTransaction transaction(*core_);
    next_start_look_ = SteadyTime::InfiniteFuture();
    BeginStarts(transaction);
  });
}

void Scheduler::TryStart(GlobalTransaction& transaction, Lane& lane) {
  // The tasks that needed the worker may be gone: cancelled, or past their deadline.
  if (lane.preparing.empty() && lane.num_awaiting == 0) {
    seats_.Failed(lane.seat);
    lane.starting = false;
    ++lane.num_start_tries;
    return;
  }
  ++lane.num_starts;
  core_->starter.Run([this, lane = &lane] {
    auto worker = core_->broker->StartWorker(lane->device);
    const uint64_t record = worker.ok() ? core_->recorder->StoreWorker(**worker) : 0;
    GlobalTransaction transaction(*core_);
    if (worker.ok()) {
      WorkerStarted(transaction, *lane, *std::move(worker), record);
    } else {
      WorkerNotStarted(transaction, *lane, worker.status());
    }
    BeginStarts(transaction);
  });
}

void Scheduler::WorkerStarted(GlobalTransaction& transaction, Lane& lane,
                              std::shared_ptr<broker::Worker> worker, uint64_t record) {
  seats_.Started(lane.seat, core_->Now());
  lane.starting = false;
  ++lane.num_start_tries;
  lane.start_error = absl::OkStatus();
  lane.num_start_failures = 0;
  lane.first_lack = SteadyTime::InfiniteFuture();
  lane.worker = std::move(worker);
  lane.processor_time.Begin(lane.worker->pid());
  lane.worker_record = record;
  lane.last_used = core_->Now();
  core_->recorder->WorkerAdopted(transaction, record, lane);
  ForgetWorker(lane);
  lane.recalls.clear();
  lane.next_sequence = 1;
  const broker::Worker* identity = lane.worker.get();
  lane.worker->Adopt(
      {.tasks_done =
           [this, lane = &lane, identity](absl::Span<const wire::TaskResult> results) {
             TenantTransaction transaction(*core_, lane->tenant);
             TasksDone(transaction, *lane, identity, results);
           },
       .printed =
           [this, lane = &lane, identity](uint64_t sequence, std::string_view text,
                                          uint64_t dropped_lines) {
             TenantTransaction transaction(*core_, lane->tenant);
             if (lane->worker.get() == identity)
               Printed(transaction, *lane, sequence, text, dropped_lines);
           },
       .cancelled =
           [this, lane = &lane, identity](uint64_t sequence, bool taken) {
             TenantTransaction transaction(*core_, lane->tenant);
             TasksCancelled(transaction, *lane, identity, sequence, taken);
           },
       .died =
           [this, lane = &lane, identity](const broker::WorkerDeath& death) {
             GlobalTransaction transaction(*core_);
             seats_.Gone();
             if (lane->worker.get() == identity) {
               seats_.Free(lane->seat);
               WorkerDied(transaction, *lane, identity, death);
             } else {
               MemoryChanged(transaction);  // its device memory is free now
             }
             BeginStarts(transaction);
           }});
  PrepareAll(transaction, lane);
  Pump(transaction, lane);
}

// The state of a worker does not apply to the next.
void Scheduler::ForgetWorker(Lane& lane) {
  lane.mapped.clear();
  lane.loaded.clear();
  lane.load_errors.clear();
  lane.attributes.clear();
  lane.graphs.clear();
}

void Scheduler::WorkerNotStarted(GlobalTransaction& transaction, Lane& lane,
                                 const absl::Status& why) {
  seats_.Failed(lane.seat);
  if (ending_) return EndStart(transaction, lane, why);
  if (IsLack(why)) return StartLacked(transaction, lane, why);
  // A worker that dies while it starts is replaced like any other.
  std::optional<absl::Duration> pause;
  if (absl::IsAborted(why)) {
    pause = PauseBeforeNextStart(lane.num_starts, core_->Now() - lane.first_start,
                                 core_->options.start_patience);
  }
  if (!pause.has_value()) return StartFailed(transaction, lane, why);
  // Running workers may have the resources that the start lacked. One death may be chance.
  if (lane.num_starts > 1) GiveWay(transaction, lane.device);
  core_->timer.At(core_->Now() + *pause, [this, lane = &lane] {
    GlobalTransaction transaction(*core_);
    WaitForWorker(transaction, *lane);
  });
}

// Other workers have the resources that this start needs. An idle one ends for it now, and the
// device queue is the first to start when a worker ends. This is no evidence against the device.
void Scheduler::StartLacked(GlobalTransaction& transaction, Lane& lane, const absl::Status& why) {
  const SteadyTime now = core_->Now();
  const WorkerSeats::Lack lack = LackOf(why);
  seats_.Lacked(lane.device, lack, now);
  lane.start_lack = why;
  if (lane.first_lack == SteadyTime::InfiniteFuture()) lane.first_lack = now;
  const bool others = seats_.num_of_all() > 0;
  const SteadyTime give_up = lane.first_lack + core_->options.start_patience;
  if (!others || now >= give_up) return EndStart(transaction, lane, NoRoomFor(lane));
  GiveWay(transaction,
          lack == WorkerSeats::Lack::kMachine ? std::nullopt : std::optional<int>(lane.device));
  seats_.WaitAgain(lane.seat, now);
  core_->timer.At(give_up, [this, lane = &lane, give_up] {
    GlobalTransaction transaction(*core_);
    if (lane->first_lack + core_->options.start_patience != give_up) return;
    if (lane->seat.state == WorkerSeats::Seat::State::kWaiting)
      EndStart(transaction, *lane, NoRoomFor(*lane));
  });
}

absl::Status Scheduler::NoRoomFor(const Lane& lane) const {
  const std::string device = absl::StrCat("devices/", lane.description.id());
  if (LackOf(lane.start_lack) == WorkerSeats::Lack::kMachine) return lane.start_lack;
  return TryLater(
      absl::StatusCode::kResourceExhausted, v1::ERROR_REASON_DEVICE_MEMORY,
      absl::StrCat("the device has no room for one more tenant's process now; try again: ", device),
      absl::Seconds(1), {{"device", device}});
}

// A canary shows whether the device is to blame, and the device queue waits for its result. If the
// device is not to blame, only this tenant's work fails, and after some tries.
void Scheduler::StartFailed(GlobalTransaction& transaction, Lane& lane, const absl::Status& why) {
  ++lane.num_start_failures;
  GiveWay(transaction, lane.device);
  const bool watched = core_->options.health.interval != absl::InfiniteDuration();
  if (watched) health_.Suspect(transaction, lane.device);
  // If the device is to blame, canaries find that before the last try.
  if (watched && lane.num_start_failures <= core_->options.health.max_failures) {
    lane.awaits_canary = true;
    return;
  }
  lane.num_start_failures = 0;
  core_->options.log(absl::StrCat("a worker does not start: device=devices/", lane.description.id(),
                                  " tenant=", lane.tenant.value, " cause=", why.message()));
  EndStart(transaction, lane, CannotRunNow(lane));
}

absl::Status Scheduler::CannotRunNow(const Lane& lane) {
  return TryLater(absl::StatusCode::kUnavailable, v1::ERROR_REASON_DEVICE_NOT_SERVING,
                  absl::StrCat("the device cannot run work now: devices/", lane.description.id()),
                  absl::Seconds(1));
}

// No worker will start: work of this device queue that needs one ends with `status`.
void Scheduler::EndStart(GlobalTransaction& transaction, Lane& lane, const absl::Status& status) {
  seats_.Leave(lane.seat);
  lane.starting = false;
  lane.awaits_canary = false;
  lane.first_lack = SteadyTime::InfiniteFuture();
  ++lane.num_start_tries;
  lane.start_error = status;
  WakeWaiters(transaction);
  if (ending_) return;  // the next daemon may run these tasks
  const std::vector<std::shared_ptr<Task>> tasks = lane.preparing.All();
  for (const auto& task : tasks) {
    if (task->state == TaskState::kPreparing) EndUnrun(transaction, task, status);
  }
}

// A canary has ended, or could not be sent.
void Scheduler::CanaryEnded(GlobalTransaction& transaction, int device) {
  lanes_.ForEach(transaction, [&](Lane& lane) {
    if (lane.device != device || !std::exchange(lane.awaits_canary, false)) return;
    if (health_.Serves(device)) {
      WaitForWorker(transaction, lane);
    } else {
      lane.num_start_failures = 0;
      EndStart(transaction, lane, CannotRunNow(lane));
    }
  });
}

bool Scheduler::MayEndWorker(const Lane& lane) {
  return lane.worker != nullptr && lane.in_flight.empty() && lane.num_copies == 0 &&
         !lane.growing && lane.num_asking == 0 && lane.num_awaiting == 0;
}

// Whether the device queue has no work in flight or in preparation.
bool Scheduler::IsIdle(const Lane& lane) {
  return MayEndWorker(lane) && lane.preparing.empty() && !lane.streaming;
}

// Ends the idle worker that was used least recently, of this device or of any. False: there is
// none. `except`: not this device queue's.
bool Scheduler::GiveWay(GlobalTransaction& transaction, std::optional<int> device,
                        const Lane* except) {
  Lane* least = nullptr;
  lanes_.ForEach(transaction, [&](Lane& lane) {
    if (device.has_value() && lane.device != *device) return;
    if (&lane == except || !IsIdle(lane)) return;
    if (least == nullptr || lane.last_used < least->last_used) least = &lane;
  });
  if (least == nullptr) return false;
  EndWorker(transaction, *least);
  return true;
}

// Ends the device queue's worker. Arrays stay, since the daemon owns their memory. Empty arenas are
// released.
void Scheduler::EndWorker(GlobalTransaction& transaction, Lane& lane) {
  Charge(transaction, lane, 0);
  memory_.Trim(transaction, lane, 0);
  std::shared_ptr<broker::Worker> worker = std::exchange(lane.worker, nullptr);
  core_->recorder->WorkerGone(transaction, lane.tenant, std::exchange(lane.worker_record, 0));
  ForgetWorker(lane);
  lane.yielding = false;
  seats_.Free(lane.seat);
  core_->executor.Run([worker = std::move(worker)] { worker->Shutdown(); });
}

// If all workers are busy and a device queue has waited for `worker_turn`, the device queue that
// has had a worker longest yields. It gets no new tasks, and its worker ends after its tasks in
// flight.
void Scheduler::AskToYield(GlobalTransaction& transaction) {
  const SteadyTime now = core_->Now();
  const SteadyTime before = now - core_->options.worker_turn;
  bool for_any = false;
  const WorkerSeats::Seat* blocked = seats_.Blocked(now, &for_any);
  if (blocked == nullptr || blocked->since > before) return;
  Lane* longest = nullptr;
  lanes_.ForEach(transaction, [&](Lane& lane) {
    if (!for_any && lane.device != blocked->device) return;
    if (lane.worker == nullptr || lane.yielding || lane.seat.since > before) return;
    if (longest == nullptr || lane.seat.since < longest->seat.since) longest = &lane;
  });
  if (longest == nullptr) return;
  longest->yielding = any_yielding_ = true;
  NoteDemand(*longest);
  GiveTurns(transaction, longest->device);
  YieldIfDone(transaction, *longest);
}

void Scheduler::YieldIfDone(GlobalTransaction& transaction, Lane& lane) {
  if (!lane.yielding || !MayEndWorker(lane)) return;
  EndWorker(transaction, lane);
  if (!lane.preparing.empty()) StartWorker(transaction, lane);  // after the device queues that wait
  BeginStarts(transaction);
}

void Scheduler::StopYielding(GlobalTransaction& transaction) {
  if (!std::exchange(any_yielding_, false)) return;
  lanes_.ForEach(transaction, [&](Lane& lane) {
    if (std::exchange(lane.yielding, false)) Pump(transaction, lane);
  });
}

// Whether starts slow down with the number of workers: a driver creates contexts one after another.
bool Scheduler::StartsSlowDown(int device) const {
  return !core_->broker->devices()[device].host_memory();
}

// Called each second: ends long-idle workers and those beyond their device's bound, and makes busy
// device queues yield.
void Scheduler::TendWorkers(GlobalTransaction& transaction) {
  const SteadyTime now = core_->Now();
  const SteadyTime idle_since = now - core_->options.worker_idle_timeout;
  std::vector<Lane*> yielding;
  lanes_.ForEach(transaction, [&](Lane& lane) {
    if (IsIdle(lane) && lane.last_used <= idle_since) EndWorker(transaction, lane);
    if (lane.yielding) yielding.push_back(&lane);
  });
  for (Lane* lane : yielding) YieldIfDone(transaction, *lane);
  for (int device = 0; device < core_->memory_place(); ++device) {
    if (StartsSlowDown(device) && seats_.IsCrowded(device, now)) {
      seats_.Crowded(device, kMostInACrowd, now);
    }
    for (int i = 0; i < kMostEndsAtOnce && seats_.num_taken(device) > seats_.most(device, now); ++i)
      if (!GiveWay(transaction, device)) break;
  }
  BeginStarts(transaction);
  AskToYield(transaction);
}

}  // namespace stride::scheduler
