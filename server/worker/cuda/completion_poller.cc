#include "server/worker/cuda/completion_poller.h"

#include <sched.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/base/environment.h"
#include "server/worker/cuda/driver/cuda_status.h"

namespace stride::cuda {
namespace {

using std::chrono::microseconds;

// A short task ends within this time; polling without a yield sees its end at once.
constexpr auto kSpin = microseconds(100);
// Beyond this time a task is long, and 20 us of delay is less than a percent of it.
constexpr auto kYield = microseconds(3000);
constexpr long kSleepNanoseconds = 20'000;
// Interval of checks whether a device without completions still works.
constexpr auto kCheck = microseconds(500);
// Reports are batched while more work is in flight: up to kManyFinished, or until kTogether after
// the last end. With much work in flight the device stays busy until the daemon has sent more, so
// the wait is longer.
constexpr auto kTogether = microseconds(40);
constexpr auto kTogetherFarAhead = microseconds(120);
constexpr size_t kFarAhead = 96;
constexpr size_t kManyFinished = 64;
// How long polling continues with no work in flight: a client in a request-reply loop is back by
// then.
constexpr auto kLinger = microseconds(200);

bool Reached(uint32_t now, uint32_t mark) { return static_cast<int32_t>(now - mark) >= 0; }

}  // namespace

CompletionPoller::CompletionPoller(const Driver& driver, const Context& context,
                                   worker::Completions& completions,
                                   std::array<Watch, kNumLanes> lanes,
                                   std::atomic<uint64_t>& heartbeat, PrintCapture* capture)
    : driver_(driver),
      context_(context),
      completions_(completions),
      watches_(lanes),
      heartbeat_(heartbeat),
      capture_(capture) {
  last_end_.fill(Clock::now());
  thread_ = std::thread([this] { Run(); });
}

CompletionPoller::~CompletionPoller() {
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
    wake_.Signal();
  }
  thread_.join();
}

void CompletionPoller::Begin(Lane lane, uint64_t id, uint32_t mark, std::string label) {
  Work work{id, mark, std::move(label)};
  Begin(lane, absl::MakeSpan(&work, 1));
}

void CompletionPoller::Begin(Lane lane, absl::Span<Work> work) {
  const Clock::time_point now = Clock::now();
  absl::MutexLock lock(&mutex_);
  const bool idle = !HasWork();
  for (Work& one : work) {
    lanes_[lane].push_back(
        {one.id, one.mark, std::move(one.label), now, false, absl::OkStatus(), {}, nullptr});
  }
  // The poller wakes while the work is launched.
  num_calls_.fetch_add(1, std::memory_order_release);
  if (idle) wake_.Signal();
}

void CompletionPoller::Launched(Lane lane, absl::Span<const absl::Status> statuses, Faults faults,
                                std::shared_ptr<const Event> prints) {
  absl::MutexLock lock(&mutex_);
  std::deque<Entry>& entries = lanes_[lane];
  for (size_t i = 0; i < statuses.size(); ++i) {
    Entry& entry = entries[entries.size() - statuses.size() + i];
    entry.launched = true;
    entry.status = statuses[i];
  }
  entries.back().faults = std::move(faults);
  entries.back().prints = std::move(prints);
  num_calls_.fetch_add(1, std::memory_order_release);
}

bool CompletionPoller::HasEnded(Lane lane, uint32_t mark) const {
  return Reached(watches_[lane].mark->load(std::memory_order_acquire), mark);
}

void CompletionPoller::Drain() {
  absl::MutexLock lock(&mutex_);
  mutex_.Await(absl::Condition(this, &CompletionPoller::IsDrained));
}

void CompletionPoller::Fault(CUresult result) {
  fault_.store(result);
  {
    absl::MutexLock lock(&mutex_);
    wake_.Signal();
  }
  while (true) pause();
}

void CompletionPoller::Run() {
  prctl(PR_SET_TIMERSLACK, 1000);
  if (absl::Status status = context_.MakeCurrent(); !status.ok())
    completions_.Fatal(0, status, /*context_lost=*/false);
  std::vector<Finished> finished;
  Clock::time_point progress = Clock::now(), checked = progress, reported = progress;
  size_t under_way = 0;
  while (true) {
    const int fault = fault_.load();
    const size_t before = finished.size();
    if (Changed() || fault != CUDA_SUCCESS) under_way = Collect(&finished);
    const Clock::time_point now = Clock::now();
    if (finished.size() > before) progress = now;
    const auto together = under_way >= kFarAhead ? kTogetherFarAhead : kTogether;
    const bool wait = under_way > 0 && fault == CUDA_SUCCESS && finished.size() < kManyFinished &&
                      now - reported < together;
    if (!finished.empty() && !wait) {
      Report(finished);
      finished.clear();
      reported = now;
    } else if (fault != CUDA_SUCCESS) {
      EndProcess(static_cast<CUresult>(fault));
    } else if (under_way == 0) {
      if (now - progress < kLinger) {
        Pause(now - progress);
      } else if (AwaitWork()) {
        progress = checked = Clock::now();
      } else {
        return;
      }
    } else {
      if (now - std::max(progress, checked) > kCheck) {
        CheckDevice();
        checked = Clock::now();
      }
      Pause(now - progress);
    }
  }
}

bool CompletionPoller::Changed() {
  const uint32_t calls = num_calls_.load(std::memory_order_acquire);
  bool changed = calls != seen_calls_;
  seen_calls_ = calls;
  for (int lane = 0; lane < kNumLanes; ++lane) {
    const uint32_t mark = watches_[lane].mark->load(std::memory_order_acquire);
    changed = changed || mark != seen_marks_[lane];
    seen_marks_[lane] = mark;
  }
  return changed;
}

size_t CompletionPoller::Collect(std::vector<Finished>* finished) {
  absl::MutexLock lock(&mutex_);
  const Clock::time_point now = Clock::now();
  for (int lane = 0; lane < kNumLanes; ++lane) {
    const uint32_t mark = watches_[lane].mark->load(std::memory_order_acquire);
    std::deque<Entry>& entries = lanes_[lane];
    while (!entries.empty() && entries.front().launched && Reached(mark, entries.front().mark)) {
      const Clock::time_point start = std::max(entries.front().begun, last_end_[lane]);
      const double seconds = std::chrono::duration<double>(now - start).count();
      Entry& ended = entries.front();
      if (ended.status.ok()) ended.status = FirstFault(ended.faults);
      finished->push_back({static_cast<Lane>(lane), std::move(ended), seconds});
      entries.pop_front();
      last_end_[lane] = now;
    }
  }
  reporting_ = !finished->empty();
  size_t under_way = 0;
  for (const std::deque<Entry>& entries : lanes_) under_way += entries.size();
  return under_way;
}

absl::Status CompletionPoller::FirstFault(const Faults& faults) {
  for (size_t i = 0; i < faults.places.size(); ++i) {
    absl::Status status = ToStatus(faults.places[i]);
    if (status.ok()) continue;
    if (faults.prefixes == nullptr) return status;
    absl::Status told(status.code(), absl::StrCat(faults.prefixes->at(i), status.message()));
    status.ForEachPayload(
        [&](absl::string_view type, const absl::Cord& payload) { told.SetPayload(type, payload); });
    return told;
  }
  return absl::OkStatus();
}

void CompletionPoller::Report(const std::vector<Finished>& finished) {
  size_t tasks = std::count_if(finished.begin(), finished.end(),
                               [](const Finished& one) { return one.lane == kCompute; });
  for (const auto& [lane, entry, seconds] : finished) {
    if (lane == kCompute) {
      if (entry.prints != nullptr) ReportPrinted(entry);
      completions_.TaskDone(entry.id, entry.status, std::max(0.0, seconds), /*more=*/--tasks > 0);
    } else {
      completions_.CopyDone(entry.id, entry.status);
    }
  }
  absl::MutexLock lock(&mutex_);
  reporting_ = false;
}

void CompletionPoller::ReportPrinted(const Entry& entry) {
  PrintedText printed = capture_->Flush(driver_, entry.prints->get());
  if (printed.empty()) return;
  print_budget_.Take(&printed, Now());
  completions_.Printed(entry.id, printed);
}

bool CompletionPoller::AwaitWork() {
  absl::MutexLock lock(&mutex_);
  while (!HasWork() && !stopping_ && fault_.load() == CUDA_SUCCESS) wake_.Wait(&mutex_);
  return HasWork() || !stopping_;
}

void CompletionPoller::Pause(Clock::duration idle) {
  if (idle < kSpin) {
    for (int i = 0; i < 8; ++i) __builtin_ia32_pause();
  } else if (idle < kYield) {
    sched_yield();
  } else {
    const timespec time = {0, kSleepNanoseconds};
    nanosleep(&time, nullptr);
  }
}

void CompletionPoller::CheckDevice() {
  bool works = false;
  for (const Watch& watch : watches_) {
    const CUresult result = driver_.cuStreamQuery(watch.stream);
    works = works || result == CUDA_ERROR_NOT_READY;
    if (result != CUDA_SUCCESS && result != CUDA_ERROR_NOT_READY) fault_.store(result);
  }
  if (works) heartbeat_.fetch_add(1, std::memory_order_relaxed);
}

void CompletionPoller::EndProcess(CUresult result) {
  uint64_t sequence = 0;
  std::string label;
  {
    absl::MutexLock lock(&mutex_);
    if (!lanes_[kCompute].empty()) {
      sequence = lanes_[kCompute].front().id;
      label = lanes_[kCompute].front().label;
    }
  }
  completions_.Fatal(sequence, FaultStatus(result, label), IsSticky(result));
}

bool CompletionPoller::HasWork() const {
  return std::any_of(lanes_.begin(), lanes_.end(), [](const auto& lane) { return !lane.empty(); });
}

}  // namespace stride::cuda
