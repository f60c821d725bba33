#include "server/engine/scheduling/worker_starter.h"

#include <algorithm>
#include <climits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/base/error.h"
#include "server/base/system_error.h"
#include "server/engine/core/start_retry.h"
#include "server/engine/memory/staged_copy.h"
#include "server/engine/persistence/journal_writer.h"

namespace stride::engine {
namespace {

// Workers of a crowded device. A start on an H100 takes 0.3 s next to 12 contexts, 0.4 s next to 32
// and 1 s next to 100 (docs/decisions/0027).
constexpr int kMostInACrowd = 16;
// Workers beyond a device's bound that end each second: the driver ends 10 contexts a second, and
// starts wait for it.
constexpr int kMostEndsAtOnce = 8;
// Workers sampled in each measurement.
constexpr int kSamples = 8;
// The share of a device's memory that stays free: arrays and workers grow during a start.
constexpr double kDeviceReserve = 1.0 / 32;
constexpr double kHostReserve = 1.0 / 8;
// Longest time from a failed send to a dead worker until the broker reports the death.
constexpr absl::Duration kDeathNotice = absl::Seconds(5);
// Processes and threads of the daemon, its compilers and other programs of its user.
constexpr int kOtherThreads = 512;

using SeatState = WorkerSeats::Seat::State;

// The error for a lack of a machine's resource has the resource's name; that for device memory has
// none.
WorkerSeats::Lack LackOf(const absl::Status& status) {
  return MetadataOf(status, "resource").empty() ? WorkerSeats::Lack::kDevice
                                                : WorkerSeats::Lack::kMachine;
}

absl::Status CannotRunNow(const DeviceQueue& queue) {
  return TryLater(absl::StatusCode::kUnavailable, v1::ERROR_REASON_DEVICE_NOT_SERVING,
                  absl::StrCat("the device cannot run work now: devices/", queue.description.id()),
                  absl::Seconds(1));
}

}  // namespace

WorkerStarter::WorkerStarter(Core* core, DeviceQueues* queues, HealthWatch* health,
                             Receivers receivers)
    : core_(core),
      queues_(queues),
      health_(health),
      receivers_(receivers),
      seats_(core->memory_place(), {.at_once = core->options.max_starts}),
      costs_(core->memory_place()) {}

// The start waits in line with others; a global transaction lets it begin.
void WorkerStarter::Request(TenantTransaction& transaction, DeviceQueue& queue) {
  if (std::exchange(queue.start.requested_, true)) return;
  queue.start.num_tries_ = 0;
  queue.start.requested_since_ = core_->Now();
  if (GlobalTransaction* global = transaction.global()) {
    Wait(*global, queue);
    return;
  }
  transaction.Defer([this, &queue] {
    GlobalTransaction transaction(*core_);
    Wait(transaction, queue);
  });
}

absl::Status WorkerStarter::AwaitWorker(GlobalTransaction& transaction, DeviceQueue& queue,
                                        SteadyTime deadline) {
  WorkerStart& start = queue.start;
  while (queue.worker == nullptr) {
    const uint64_t ended = start.num_ended_;
    ++start.num_awaiting_;  // keeps the worker until this thread has seen it
    Request(transaction, queue);
    // A postponed start is not tried again once the engine ends.
    auto changed = [&] {
      return queue.worker != nullptr || start.num_ended_ != ended || core_->ending;
    };
    const bool in_time = transaction.Await(absl::Condition(&changed), deadline);
    --start.num_awaiting_;
    if (queue.worker != nullptr) break;
    if (core_->ending) return CannotRunNow(queue);
    if (!in_time) {
      return MakeError(absl::StatusCode::kDeadlineExceeded, v1::ERROR_REASON_DEADLINE,
                       "the deadline passed before the device had a process for this tenant");
    }
    if (!start.error_.ok()) return start.error_;
  }
  return absl::OkStatus();
}

// The queue's worker, with the arena mapped. Null: there is none that lives.
std::shared_ptr<broker::Worker> WorkerStarter::LivingWorker(
    DeviceQueue& queue, const std::shared_ptr<store::Arena>& arena) {
  queue.last_used = core_->Now();
  bool there = queue.worker != nullptr && queue.worker->alive();
  if (there && arena != nullptr) there = MapArena(queue, arena, /*peer=*/false).ok();
  return there ? queue.worker : nullptr;
}

absl::StatusOr<std::shared_ptr<broker::Worker>> WorkerStarter::BlockingWorker(
    DeviceQueue& queue, const std::shared_ptr<store::Arena>& arena, SteadyTime deadline) {
  {
    TenantTransaction transaction(*core_, queue.tenant);
    if (auto worker = LivingWorker(queue, arena)) return worker;
  }
  GlobalTransaction transaction(*core_);
  for (int i = 0; i < kMaxTransferTries; ++i) {
    if (absl::Status status = AwaitWorker(transaction, queue, deadline); !status.ok())
      return status;
    const std::shared_ptr<broker::Worker> worker = queue.worker;
    if (LivingWorker(queue, arena) != nullptr) return worker;
    // The worker died; once that is observed its successor is asked.
    auto known = [&] { return queue.worker != worker || core_->ending; };
    transaction.Await(absl::Condition(&known), core_->Now() + kDeathNotice);
  }
  return LostWorker();
}

void WorkerStarter::Wait(GlobalTransaction& transaction, DeviceQueue& queue) {
  if (!queue.start.requested_ || queue.worker != nullptr) return;
  seats_.Wait(queue.start.seat_, core_->Now());
  BeginStarts(transaction);
}

void WorkerStarter::WaitAt(SteadyTime time, DeviceQueue& queue) {
  core_->timer.At(time, [this, queue = &queue] {
    GlobalTransaction transaction(*core_);
    Wait(transaction, *queue);
  });
}

// Starts the workers that may start now, and ends idle ones for those that wait only for room.
void WorkerStarter::BeginStarts(GlobalTransaction& transaction) {
  if (core_->ending) return;
  const SteadyTime now = core_->Now();
  for (;;) {
    while (WorkerSeats::Seat* seat = seats_.Begin(now)) Try(transaction, *seat->queue);
    bool for_any = false;
    const WorkerSeats::Seat* blocked = seats_.Blocked(now, &for_any);
    if (blocked == nullptr) break;
    if (!GiveWay(transaction, for_any ? std::nullopt : std::optional<int>(blocked->device))) break;
  }
  if (!seats_.waiting()) StopYielding(transaction);
  const SteadyTime next = seats_.next_try(now);
  if (next >= next_look_) return;
  next_look_ = next;
  core_->timer.At(next, [this] {
    GlobalTransaction transaction(*core_);
    next_look_ = SteadyTime::InfiniteFuture();
    BeginStarts(transaction);
  });
}

void WorkerStarter::Try(GlobalTransaction& transaction, DeviceQueue& queue) {
  // The tasks that needed the worker may be gone: cancelled, or past their deadline.
  if (queue.preparing.empty() && queue.start.num_awaiting_ == 0) {
    seats_.Failed(queue.start.seat_);
    queue.start.requested_ = false;
    ++queue.start.num_ended_;
    return;
  }
  ++queue.start.num_tries_;
  core_->starter.Run([this, queue = &queue] {
    auto worker = core_->broker->StartWorker(queue->device);
    const uint64_t record = worker.ok() ? core_->journal_writer->StoreWorker(**worker) : 0;
    GlobalTransaction transaction(*core_);
    if (worker.ok()) {
      Started(transaction, *queue, *std::move(worker), record);
    } else {
      NotStarted(transaction, *queue, worker.status());
    }
    BeginStarts(transaction);
  });
}

void WorkerStarter::Started(GlobalTransaction& transaction, DeviceQueue& queue,
                            std::shared_ptr<broker::Worker> worker, uint64_t record) {
  WorkerStart& start = queue.start;
  seats_.Started(start.seat_, core_->Now());
  start.requested_ = false;
  ++start.num_ended_;
  start.error_ = absl::OkStatus();
  start.num_failures_ = 0;
  start.lacks_since_ = SteadyTime::InfiniteFuture();
  queue.worker = std::move(worker);
  queue.processor_time.Begin(queue.worker->pid());
  queue.worker_record = record;
  queue.last_used = core_->Now();
  core_->journal_writer->WorkerAdopted(transaction, record, queue);
  queue.contents.Clear();
  queue.sending.recalls.clear();
  queue.sending.next_sequence = 1;
  queue.worker->Adopt(CallbacksFor(queue));
  receivers_.events->WorkerStarted(transaction, queue);
}

// Reports of a worker that the queue has no longer are ignored.
broker::WorkerCallbacks WorkerStarter::CallbacksFor(DeviceQueue& queue) {
  const broker::Worker* worker = queue.worker.get();
  return {
      .tasks_done = [this, queue = &queue, worker](auto results) { Done(*queue, worker, results); },
      .printed =
          [this, queue = &queue, worker](uint64_t sequence, std::string_view text,
                                         uint64_t dropped_lines) {
            TenantTransaction transaction(*core_, queue->tenant);
            if (queue->worker.get() == worker)
              receivers_.reports->Printed(transaction, *queue, sequence, text, dropped_lines);
          },
      .cancelled =
          [this, queue = &queue, worker](uint64_t sequence, bool taken) {
            TenantTransaction transaction(*core_, queue->tenant);
            if (queue->worker.get() == worker)
              receivers_.cancels->Answered(transaction, *queue, sequence, taken);
          },
      .died = [this, queue = &queue,
               worker](const broker::WorkerDeath& death) { Died(*queue, worker, death); }};
}

void WorkerStarter::Done(DeviceQueue& queue, const broker::Worker* worker,
                         absl::Span<const wire::TaskResult> results) {
  TenantTransaction transaction(*core_, queue.tenant);
  if (queue.worker.get() != worker) return;
  receivers_.reports->TasksDone(transaction, queue, results);
  if (!queue.start.yields_ || !queue.sending.in_flight.empty()) return;
  transaction.Defer([this, &queue] {
    GlobalTransaction transaction(*core_);
    YieldIfDone(transaction, queue);
  });
}

void WorkerStarter::Died(DeviceQueue& queue, const broker::Worker* worker,
                         const broker::WorkerDeath& death) {
  GlobalTransaction transaction(*core_);
  seats_.Gone();
  if (queue.worker.get() == worker) {
    seats_.Free(queue.start.seat_);
    queue.start.yields_ = false;
    queue.worker = nullptr;
    queue.contents.Clear();
    receivers_.events->WorkerDied(transaction, queue, death);
  } else {
    receivers_.events->WorkerGone(transaction);
  }
  BeginStarts(transaction);
}

void WorkerStarter::NotStarted(GlobalTransaction& transaction, DeviceQueue& queue,
                               const absl::Status& why) {
  WorkerStart& start = queue.start;
  seats_.Failed(start.seat_);
  if (core_->ending) return EndRequest(transaction, queue, why);
  if (IsLack(why)) return Lacked(transaction, queue, why);
  // A worker that dies while it starts is replaced like any other.
  std::optional<absl::Duration> pause;
  if (absl::IsAborted(why)) {
    pause = PauseBeforeNextStart(start.num_tries_, core_->Now() - start.requested_since_,
                                 core_->options.start_patience);
  }
  if (!pause.has_value()) return Failed(transaction, queue, why);
  // Running workers may have the resources that the start lacked. One death may be chance.
  if (start.num_tries_ > 1) GiveWay(transaction, queue.device);
  WaitAt(core_->Now() + *pause, queue);
}

// Other workers have the resources that this start needs. An idle one ends for it now, and the
// device queue is the first to start when a worker ends. This is no evidence against the device.
void WorkerStarter::Lacked(GlobalTransaction& transaction, DeviceQueue& queue,
                           const absl::Status& why) {
  WorkerStart& start = queue.start;
  const SteadyTime now = core_->Now();
  const WorkerSeats::Lack lack = LackOf(why);
  seats_.Lacked(queue.device, lack, now);
  start.lack_ = why;
  if (start.lacks_since_ == SteadyTime::InfiniteFuture()) start.lacks_since_ = now;
  const bool others = seats_.num_of_all() > 0;
  const SteadyTime give_up = start.lacks_since_ + core_->options.start_patience;
  if (!others || now >= give_up) return EndRequest(transaction, queue, NoRoomFor(queue));
  GiveWay(transaction,
          lack == WorkerSeats::Lack::kMachine ? std::nullopt : std::optional<int>(queue.device));
  seats_.WaitAgain(start.seat_, now);
  core_->timer.At(give_up, [this, queue = &queue, give_up] {
    GlobalTransaction transaction(*core_);
    if (queue->start.lacks_since_ + core_->options.start_patience != give_up) return;
    if (queue->start.seat_.state == SeatState::kWaiting)
      EndRequest(transaction, *queue, NoRoomFor(*queue));
  });
}

absl::Status WorkerStarter::NoRoomFor(const DeviceQueue& queue) {
  const std::string device = absl::StrCat("devices/", queue.description.id());
  if (LackOf(queue.start.lack_) == WorkerSeats::Lack::kMachine) return queue.start.lack_;
  return TryLater(
      absl::StatusCode::kResourceExhausted, v1::ERROR_REASON_DEVICE_MEMORY,
      absl::StrCat("the device has no room for one more tenant's process now; try again: ", device),
      absl::Seconds(1), {{"device", device}});
}

// A probe shows whether the device is to blame, and the device queue waits for its result. If the
// device is not to blame, only this tenant's work fails, and after some tries.
void WorkerStarter::Failed(GlobalTransaction& transaction, DeviceQueue& queue,
                           const absl::Status& why) {
  WorkerStart& start = queue.start;
  ++start.num_failures_;
  GiveWay(transaction, queue.device);
  const bool watched = core_->options.health.interval != absl::InfiniteDuration();
  if (watched) health_->Suspect(transaction, queue.device);
  // If the device is to blame, canaries find that before the last try.
  if (watched && start.num_failures_ <= core_->options.health.max_failures) {
    start.awaits_probe_ = true;
    return;
  }
  start.num_failures_ = 0;
  core_->options.log(absl::StrCat("a worker does not start: device=devices/",
                                  queue.description.id(), " tenant=", queue.tenant.value,
                                  " cause=", why.message()));
  EndRequest(transaction, queue, CannotRunNow(queue));
}

// No worker will start.
void WorkerStarter::EndRequest(GlobalTransaction& transaction, DeviceQueue& queue,
                               const absl::Status& status) {
  WorkerStart& start = queue.start;
  seats_.Leave(start.seat_);
  start.requested_ = false;
  start.awaits_probe_ = false;
  start.lacks_since_ = SteadyTime::InfiniteFuture();
  ++start.num_ended_;
  start.error_ = status;
  transaction.WakeWaiters();
  // The next daemon may run the tasks that wait here.
  if (!core_->ending) receivers_.events->WorkerNotStarted(transaction, queue, status);
}

void WorkerStarter::ProbeEnded(GlobalTransaction& transaction, int device) {
  queues_->ForEach(transaction, [&](DeviceQueue& queue) {
    if (queue.device != device || !std::exchange(queue.start.awaits_probe_, false)) return;
    if (health_->Serves(device)) {
      Wait(transaction, queue);
    } else {
      queue.start.num_failures_ = 0;
      EndRequest(transaction, queue, CannotRunNow(queue));
    }
  });
}

bool WorkerStarter::MayEnd(const DeviceQueue& queue) {
  return queue.worker != nullptr && queue.sending.in_flight.empty() && queue.num_copies == 0 &&
         !queue.arenas.growing && queue.contents.num_waiting == 0 && queue.start.num_awaiting_ == 0;
}

// Whether the device queue has no work in flight or in preparation.
bool WorkerStarter::IsIdle(const DeviceQueue& queue) {
  return MayEnd(queue) && queue.preparing.empty() && !queue.streaming;
}

bool WorkerStarter::GiveWay(GlobalTransaction& transaction, std::optional<int> device,
                            const DeviceQueue* except) {
  DeviceQueue* least = nullptr;
  queues_->ForEach(transaction, [&](DeviceQueue& queue) {
    if (device.has_value() && queue.device != *device) return;
    if (&queue == except || !IsIdle(queue)) return;
    if (least == nullptr || queue.last_used < least->last_used) least = &queue;
  });
  if (least == nullptr) return false;
  End(transaction, *least);
  return true;
}

// Arrays stay, since the daemon owns their memory.
void WorkerStarter::End(GlobalTransaction& transaction, DeviceQueue& queue) {
  queues_->Charge(transaction, queue, 0);
  receivers_.events->WorkerEnds(transaction, queue);
  std::shared_ptr<broker::Worker> worker = std::exchange(queue.worker, nullptr);
  core_->journal_writer->WorkerGone(transaction, queue.tenant,
                                    std::exchange(queue.worker_record, 0));
  queue.contents.Clear();
  queue.start.yields_ = false;
  seats_.Free(queue.start.seat_);
  core_->executor.Run([worker = std::move(worker)] { worker->Shutdown(); });
}

// If all workers are busy and a device queue has waited for `worker_turn`, the device queue that
// has had a worker longest yields. It gets no new tasks, and its worker ends after its tasks in
// flight.
void WorkerStarter::AskToYield(GlobalTransaction& transaction) {
  const SteadyTime now = core_->Now();
  const SteadyTime before = now - core_->options.worker_turn;
  bool for_any = false;
  const WorkerSeats::Seat* blocked = seats_.Blocked(now, &for_any);
  if (blocked == nullptr || blocked->since > before) return;
  DeviceQueue* longest = nullptr;
  auto since = [](const DeviceQueue& queue) { return queue.start.seat_.since; };
  queues_->ForEach(transaction, [&](DeviceQueue& queue) {
    if (!for_any && queue.device != blocked->device) return;
    if (queue.worker == nullptr || queue.start.yields_ || since(queue) > before) return;
    if (longest == nullptr || since(queue) < since(*longest)) longest = &queue;
  });
  if (longest == nullptr) return;
  longest->start.yields_ = any_yields_ = true;
  transaction.work().Pump(*longest);  // its time slice ends
  YieldIfDone(transaction, *longest);
}

void WorkerStarter::YieldIfDone(GlobalTransaction& transaction, DeviceQueue& queue) {
  if (!queue.start.yields_ || !MayEnd(queue)) return;
  End(transaction, queue);
  if (!queue.preparing.empty()) Request(transaction, queue);  // after the device queues that wait
  BeginStarts(transaction);
}

void WorkerStarter::StopYielding(GlobalTransaction& transaction) {
  if (!std::exchange(any_yields_, false)) return;
  queues_->ForEach(transaction, [&](DeviceQueue& queue) {
    if (std::exchange(queue.start.yields_, false)) transaction.work().Pump(queue);
  });
}

// Whether starts slow down with the number of workers: a driver creates contexts one after another.
bool WorkerStarter::StartsSlowDown(int device) const {
  return !core_->broker->devices()[device].host_memory();
}

void WorkerStarter::Tend(GlobalTransaction& transaction) {
  const SteadyTime now = core_->Now();
  const SteadyTime idle_since = now - core_->options.worker_idle_timeout;
  std::vector<DeviceQueue*> yielding;
  queues_->ForEach(transaction, [&](DeviceQueue& queue) {
    if (IsIdle(queue) && queue.last_used <= idle_since) End(transaction, queue);
    if (queue.start.yields_) yielding.push_back(&queue);
  });
  for (DeviceQueue* queue : yielding) YieldIfDone(transaction, *queue);
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

int WorkerStarter::num_workers(GlobalTransaction& transaction, int device) const {
  int count = 0;
  queues_->ForEach(transaction, [&](const DeviceQueue& queue) {
    count += queue.device == device && queue.worker != nullptr ? 1 : 0;
  });
  return count;
}

void WorkerStarter::Measure(absl::FunctionRef<PlaceUse(GlobalTransaction&, int place)> use_of) {
  const int num_devices = core_->memory_place();
  std::vector<std::optional<int64_t>> used(num_devices);
  if (const auto& read = core_->options.device_memory_used) {
    for (int device = 0; device < num_devices; ++device)
      used[device] = read(core_->broker->devices()[device].id());
  }
  std::vector<int> pids;
  {
    GlobalTransaction transaction(*core_);
    queues_->ForEach(transaction, [&](const DeviceQueue& queue) {
      const bool wanted = queue.worker != nullptr && queue.worker->pid() > 0;
      if (wanted && static_cast<int>(pids.size()) < kSamples) pids.push_back(queue.worker->pid());
    });
  }
  std::vector<ProcessUse> uses;
  for (int pid : pids) {
    if (std::optional<ProcessUse> use = ReadProcessUse(pid)) uses.push_back(*use);
  }
  GlobalTransaction transaction(*core_);
  costs_.Measured(uses);
  double host_bytes = static_cast<double>(use_of(transaction, core_->memory_place()).arena_bytes);
  for (int device = 0; device < num_devices; ++device) {
    const PlaceUse use = use_of(transaction, device);
    if (core_->broker->devices()[device].host_memory())
      host_bytes += static_cast<double>(use.used_bytes);
    seats_.set_most(device, MostOf(transaction, device, used[device], use));
  }
  seats_.set_most_of_all(MostOfAll(host_bytes));
}

// `used`: the device's memory that all processes use.
int WorkerStarter::MostOf(GlobalTransaction& transaction, int device, std::optional<int64_t> used,
                          const PlaceUse& use) {
  const wire::DeviceDescription& description = core_->broker->devices()[device];
  const int option = core_->options.max_workers_of_device;
  const int allowed = option > 0 ? option : INT_MAX;
  if (description.host_memory()) return allowed;
  const auto arenas = static_cast<int64_t>(use.arena_bytes);
  if (used.has_value()) costs_.DeviceUsed(device, *used, arenas, seats_.num_taken(device));
  const auto total = static_cast<double>(description.memory_bytes());
  const double taken =
      static_cast<double>(costs_.device_bytes_before(device) + arenas) + kDeviceReserve * total;
  return std::min(allowed, WorkersThatFit(total, taken, costs_.device_bytes(device)));
}

// `host_bytes`: the host memory that arrays use.
int WorkerStarter::MostOfAll(double host_bytes) const {
  const EngineOptions& options = core_->options;
  int most = options.max_workers > 0 ? options.max_workers : INT_MAX;
  if (options.host_memory_bytes > 0) {
    const auto total = static_cast<double>(options.host_memory_bytes);
    most = std::min(most,
                    WorkersThatFit(total, host_bytes + kHostReserve * total, costs_.host_bytes()));
  }
  if (options.max_processes > 0) {
    most = std::min(most, WorkersThatFit(static_cast<double>(options.max_processes), kOtherThreads,
                                         costs_.num_threads()));
  }
  return most;
}

}  // namespace stride::engine
