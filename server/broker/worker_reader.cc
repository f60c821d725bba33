// The reader thread of a WorkerProcess: handles the worker's events until its death, and the death.
#include <poll.h>

#include <algorithm>
#include <cstddef>
#include <utility>

#include "absl/strings/str_cat.h"
#include "google/protobuf/arena.h"
#include "server/base/environment.h"
#include "server/base/error.h"
#include "server/base/spin.h"
#include "server/broker/verdict.h"
#include "server/broker/worker_process.h"
#include "server/wire/status.h"

namespace stride::broker {
namespace {

// A worker that reported its end or closed its socket exits at once; this is the time it may take.
constexpr absl::Duration kExitGrace = absl::Seconds(1);
constexpr absl::Duration kHeartbeatPeriod = absl::Seconds(5);
constexpr size_t kEventBlockBytes = 16 << 10;
// Polls for further results before the received ones are delivered, while more are outstanding.
constexpr int kLooks = 32;

}  // namespace

void WorkerProcess::Run() {
  ReadUntilEnd();
  Bury();
  list_->Remove(id_);
}

void WorkerProcess::ReadUntilEnd() {
  bool open = true, just_heard = false;
  for (;;) {
    const short events = outbox_.full() ? POLLIN | POLLOUT : POLLIN;
    pollfd entries[] = {{channel_.fd(), events, 0},
                        {child_.descriptor(), POLLIN, 0},
                        {wakeup_.descriptor(), POLLIN, 0},
                        {errors_.descriptor(), POLLIN, 0}};
    if (!open) entries[0].fd = -1;
    // A worker that has just answered may soon answer again.
    if (just_heard) SpinUntil([&] { return poll(&entries[0], 1, 0) != 0; }, kWatch);
    absl::Duration wait =
        std::min({UntilDeadline(), kHeartbeatPeriod, options_.silence_timeout / 4});
    poll(entries, 4, static_cast<int>(absl::ToInt64Milliseconds(wait)) + 1);
    if (entries[2].revents != 0) wakeup_.Clear();
    if (entries[3].revents != 0) errors_.Read();
    // Read events before the exit: the socket may still hold the last ones.
    if ((entries[0].revents & POLLOUT) != 0) Flush();
    just_heard = (entries[0].revents & ~POLLOUT) != 0;
    if (just_heard) {
      open = ReadEvents();
    } else if (entries[1].revents != 0) {
      return;
    }
    DeliverResults();
    if (context_lost_) return;
    EnforceDeadline();
    CheckHeartbeat();
  }
}

// Batches results: for small tasks each event has only a few, and each delivery takes the tenant's
// lock, which the submitting thread contends for. With many processors it also waits some
// microseconds for more. The last result is delivered at once.
bool WorkerProcess::ReadEvents() {
  Heard heard = ReadEvent();
  for (int i = 1; i < kLooks && heard != Heard::kEnd && MoreResultsToCome(); ++i) {
    heard = ReadEvent();
    if (heard == Heard::kNothing && !ProcessorsArePlenty()) break;
  }
  return heard != Heard::kEnd;
}

// Whether results are outstanding in addition to the received ones.
bool WorkerProcess::MoreResultsToCome() const {
  absl::MutexLock lock(&mutex_);
  return !results_.empty() && ledger_.last_result() < ledger_.last_submitted();
}

WorkerProcess::Heard WorkerProcess::ReadEvent() {
  // Most events fit here and need no allocation.
  alignas(std::max_align_t) char block[kEventBlockBytes];
  google::protobuf::Arena arena(block, sizeof(block));
  auto& event = *google::protobuf::Arena::CreateMessage<wire::Event>(&arena);
  std::vector<UniqueFd> descriptors;
  auto outcome = channel_.Receive(&event, &descriptors, absl::ZeroDuration());
  absl::Status status = outcome.status();
  if (outcome.ok() && *outcome == wire::Channel::Outcome::kTimeout) return Heard::kNothing;
  if (outcome.ok() && *outcome == wire::Channel::Outcome::kClosed) {
    absl::MutexLock lock(&mutex_);
    deadline_ = std::min(deadline_, Now() + kExitGrace);
    return Heard::kEnd;
  }
  if (status.ok()) status = Take(event, std::move(descriptors));
  if (status.ok()) return Heard::kEvent;
  absl::MutexLock lock(&mutex_);
  Condemn(JudgeBadEvent({status.message().data(), status.message().size()}));
  return Heard::kEnd;
}

absl::Status WorkerProcess::Take(wire::Event& event, std::vector<UniqueFd> descriptors) {
  bool brings_arena = event.has_arena_created() && event.arena_created().status().code() == 0;
  if (descriptors.size() != (brings_arena ? 1 : 0)) {
    return absl::InvalidArgumentError("a wrong number of descriptors");
  }
  {
    absl::MutexLock lock(&mutex_);
    if (state_ == State::kStarting && !event.has_started() && !event.has_fatal()) {
      return absl::InvalidArgumentError("an event before it had started");
    }
  }
  // Deliver earlier results before any other event.
  if (!event.has_tasks_done()) DeliverResults();
  switch (event.kind_case()) {
    case wire::Event::kStarted:
      return TakeStarted(event.started());
    case wire::Event::kArenaCreated:
      return TakeArena(event.arena_created(), std::move(descriptors));
    case wire::Event::kModuleLoaded:
      return TakeLoaded(event.module_loaded());
    case wire::Event::kTasksDone:
      return TakeTasks(event.tasks_done());
    case wire::Event::kPrinted:
      return TakePrinted(event.printed());
    case wire::Event::kTasksCancelled:
      return TakeCancelled(event.tasks_cancelled());
    case wire::Event::kCopiesDone:
      return TakeCopies(event.copies_done());
    case wire::Event::kFatal:
      return TakeFatal(event.fatal());
    case wire::Event::kPong:  // no ping is sent yet
    case wire::Event::KIND_NOT_SET:
      break;
  }
  return absl::InvalidArgumentError("an unrequested event");
}

absl::Status WorkerProcess::TakeStarted(const wire::Started& started) {
  absl::MutexLock lock(&mutex_);
  if (state_ != State::kStarting) return absl::InvalidArgumentError("a second start");
  if (absl::Status status = wire::ToStatus(started.status()); !status.ok()) {
    Condemn(std::move(status));
  } else {
    state_ = State::kReady;
  }
  return absl::OkStatus();
}

absl::Status WorkerProcess::TakeTasks(const wire::TasksDone& done) {
  // Only a flooding worker would send an empty event.
  if (done.results().empty()) return absl::InvalidArgumentError("an event without results");
  absl::MutexLock lock(&mutex_);
  results_.reserve(results_.size() + static_cast<size_t>(done.results_size()));
  for (const wire::TaskResult& result : done.results()) {
    if (absl::Status s = ledger_.CheckTask(result); !s.ok()) return s;
    results_.push_back(result);
  }
  return absl::OkStatus();
}

absl::Status WorkerProcess::TakePrinted(const wire::Printed& printed) {
  {
    absl::MutexLock lock(&mutex_);
    if (absl::Status s = ledger_.CheckPrinted(printed); !s.ok()) return s;
  }
  // A task was submitted, so the worker was adopted and callbacks_ is set.
  if (callbacks_.printed)
    callbacks_.printed(printed.sequence(), printed.text(), printed.dropped_lines());
  return absl::OkStatus();
}

absl::Status WorkerProcess::TakeCancelled(const wire::TasksCancelled& cancelled) {
  {
    absl::MutexLock lock(&mutex_);
    if (absl::Status s = ledger_.TakeCancel(cancelled.sequence()); !s.ok()) return s;
  }
  // Only an adopted worker gets a Cancel, so earlier results have been delivered.
  if (callbacks_.cancelled) callbacks_.cancelled(cancelled.sequence(), cancelled.taken());
  return absl::OkStatus();
}

absl::Status WorkerProcess::TakeCopies(const wire::CopiesDone& done) {
  if (done.ids().empty()) return absl::InvalidArgumentError("an event without copies");
  absl::StatusOr<std::vector<EventLedger::CopyDone>> taken = [&] {
    absl::MutexLock lock(&mutex_);
    return ledger_.TakeCopies(done);
  }();
  if (!taken.ok()) return taken.status();
  absl::Status status = wire::ToStatus(done.status());
  for (EventLedger::CopyDone& copy : *taken) copy(status);
  return absl::OkStatus();
}

absl::Status WorkerProcess::TakeLoaded(const wire::ModuleLoaded& event) {
  absl::StatusOr<LoadDone> loaded = [&] {
    absl::MutexLock lock(&mutex_);
    return ledger_.TakeLoad(event.module());
  }();
  if (!loaded.ok()) return loaded.status();
  absl::Status status = wire::ToStatus(event.status());
  if (*loaded == nullptr) return absl::OkStatus();
  if (status.ok()) {
    (*loaded)(event);
  } else {
    (*loaded)(status);
  }
  return absl::OkStatus();
}

absl::Status WorkerProcess::TakeArena(const wire::ArenaCreated& created,
                                      std::vector<UniqueFd> descriptors) {
  absl::Status status = wire::ToStatus(created.status());
  absl::MutexLock lock(&mutex_);
  if (!status.ok()) return ledger_.PutArena(created.arena(), status);
  return ledger_.PutArena(created.arena(), std::move(descriptors[0]));
}

absl::Status WorkerProcess::TakeFatal(const wire::Fatal& fatal) {
  errors_.Read();  // the driver reports a failed assert only there
  absl::MutexLock lock(&mutex_);
  deadline_ = std::min(deadline_, Now() + kExitGrace);
  if (cause_.has_value()) return absl::OkStatus();
  absl::Status status = WithAssertion(wire::ToStatus(fatal.status()), errors_.assertion());
  cause_ = status.ok() ? JudgeBadEvent("a fatal error that is none") : status;
  bool plausible =
      fatal.sequence() > ledger_.last_result() && fatal.sequence() <= ledger_.last_submitted();
  faulting_sequence_ = plausible ? fatal.sequence() : 0;
  context_lost_ = fatal.context_lost() && !options_.device.host_memory();
  return absl::OkStatus();
}

absl::Duration WorkerProcess::UntilDeadline() const {
  absl::MutexLock lock(&mutex_);
  return std::max(deadline_ - Now(), absl::ZeroDuration());
}

void WorkerProcess::EnforceDeadline() {
  absl::MutexLock lock(&mutex_);
  if (Now() < deadline_) return;
  deadline_ = SteadyTime::InfiniteFuture();
  Condemn(JudgeStuck("did not exit", kExitGrace));
}

void WorkerProcess::CheckHeartbeat() {
  const auto* page = reinterpret_cast<const wire::StatusPage*>(page_map_.data());
  const uint64_t heartbeat = page->heartbeat.load(std::memory_order_relaxed);
  const SteadyTime now = Now();
  const absl::Duration since = now - std::exchange(heartbeat_check_, now);
  absl::MutexLock lock(&mutex_);
  if (heartbeat != heartbeat_ || state_ != State::kReady) {
    heartbeat_ = heartbeat;
    silence_ = absl::ZeroDuration();
    return;
  }
  // A clock jump or a suspended machine counts as one period.
  silence_ += std::clamp(since, absl::ZeroDuration(), kHeartbeatPeriod);
  if (silence_ > options_.silence_timeout) {
    silence_ = absl::ZeroDuration();
    Condemn(JudgeStuck("gave no sign of life", options_.silence_timeout));
  }
}

void WorkerProcess::DeliverResults() {
  std::vector<wire::TaskResult> results;
  {
    absl::MutexLock lock(&mutex_);
    if (!adopted_ || results_.empty()) return;
    results.swap(results_);
  }
  // Set once, before adopted_: reading it needs no lock.
  if (callbacks_.tasks_done) callbacks_.tasks_done(results);
}

void WorkerProcess::Bury() {
  staging_.Close();
  errors_.Read();
  errors_.Flush();
  WorkerDeath death = JudgeDeath();
  FailPending(death.cause);
  if (options_.gone) options_.gone();
  ServeTheDead(death);
}

// Idempotent. Blocks while the process is torn down: 0.2 s with a faulted CUDA context.
void WorkerProcess::Reap() {
  if (std::exchange(reaped_, true)) return;
  exit_ = child_.Reap();
}

WorkerDeath WorkerProcess::JudgeDeath() {
  // A lost context has reported its cause and no longer runs on the device, so a replacement need
  // not wait for the process's exit.
  if (context_lost_) {
    child_.Kill();
  } else {
    Reap();
  }
  const auto* page = reinterpret_cast<const wire::StatusPage*>(page_map_.data());
  WorkerDeath death;
  death.completed_sequence = page->completed_sequence.load();
  death.started_sequence = page->started_sequence.load();
  death.undone = wire::UndoneIn(*page);
  absl::MutexLock lock(&mutex_);
  // The page has the low 32 bits. It is used only where it names a task in flight.
  uint64_t running = ledger_.last_result() +
                     static_cast<uint32_t>(death.completed_sequence -
                                           static_cast<uint32_t>(ledger_.last_result())) +
                     1;
  bool in_task =
      running <= ledger_.last_submitted() && death.started_sequence != death.completed_sequence;
  if (!cause_.has_value()) {
    cause_ = JudgeExit(exit_, in_task, asked_to_end_);
    if (absl::IsFailedPrecondition(*cause_)) faulting_sequence_ = running;
  }
  death.cause = *cause_;
  death.faulting_sequence = faulting_sequence_;
  return death;
}

// A worker that was ended because of one operation has that operation's error as its cause. Copies,
// modules and memory in flight belong to other operations, which retry with the next worker.
absl::Status WorkerProcess::PendingStatus(const absl::Status& cause) const {
  const v1::ErrorReason reason = ReasonOf(cause);
  const bool of_the_process =
      reason == v1::ERROR_REASON_WORKER_LOST || reason == v1::ERROR_REASON_KERNEL_FAULT;
  return of_the_process ? cause : DeadStatus();
}

void WorkerProcess::FailPending(const absl::Status& cause) {
  const absl::Status status = PendingStatus(cause);
  std::vector<EventLedger::CopyDone> copies;
  std::vector<LoadDone> loads;
  {
    absl::MutexLock lock(&mutex_);
    state_ = State::kDead;
    copies = ledger_.TakeAllCopies();
    loads = ledger_.TakeAllLoads();
    ledger_.FailArenas(status);
  }
  for (EventLedger::CopyDone& copy : copies) copy(status);
  for (LoadDone& loaded : loads) {
    if (loaded) loaded(status);
  }
}

void WorkerProcess::ServeTheDead(const WorkerDeath& death) {
  bool told = false;
  auto due = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return !deferred_.empty() || (adopted_ && !told) || released_;
  };
  for (;;) {
    std::function<void()> call;
    {
      absl::MutexLock lock(&mutex_);
      mutex_.Await(absl::Condition(&due));
      if (!deferred_.empty()) {
        call = std::move(deferred_.front());
        deferred_.pop_front();
      } else if (!adopted_ || told) {
        serving_ = false;  // released: no calls will follow, or they must not rely on this thread
        break;
      }
    }
    if (call) {
      call();
      continue;
    }
    told = true;
    DeliverResults();
    if (callbacks_.died) callbacks_.died(death);
    Reap();
  }
  Reap();
}

}  // namespace stride::broker
