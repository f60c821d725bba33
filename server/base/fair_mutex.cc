#include "server/base/fair_mutex.h"

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "server/base/spin.h"
#include "server/base/steady_time.h"

namespace stride {
namespace {

// Critical sections last microseconds, less than a sleep and a wake-up, so spin first.
constexpr absl::Duration kWatchFor = absl::Microseconds(100);
constexpr int64_t kPatienceNanos = 1'000'000;
// A woken thread takes the lock within one or two steps; on an overloaded machine it may take more.
constexpr absl::Duration kStep = absl::Microseconds(50);
constexpr int kSteps = 40;

int64_t NowNanos() { return absl::ToInt64Nanoseconds(MachineTime().since_boot()); }

}  // namespace

void FairMutex::Lock() ABSL_NO_THREAD_SAFETY_ANALYSIS {
  if (num_waiting() > 0) LetInFirst();
  const auto take = [this] { return mutex_.TryLock(); };
  if (!take() && !SpinUntil(take, kWatchFor)) Wait();
}

// Yields to a thread that has waited for more than kPatienceNanos.
void FairMutex::LetInFirst() {
  const int64_t since = waiting_since_.load(std::memory_order_relaxed);
  if (NowNanos() - since < kPatienceNanos) return;
  for (int i = 0; i < kSteps; ++i) {
    if (num_waiting() == 0 || waiting_since_.load(std::memory_order_relaxed) != since) return;
    absl::SleepFor(kStep);
  }
}

void FairMutex::Wait() ABSL_NO_THREAD_SAFETY_ANALYSIS {
  // A thread that sees a waiter must not see an earlier waiter's time.
  if (num_waiting() == 0) NoteTime();
  num_waiting_.fetch_add(1, std::memory_order_release);
  mutex_.Lock();
  NoteTime();  // the next waiter's millisecond starts now
  num_waiting_.fetch_sub(1, std::memory_order_release);
}

void FairMutex::NoteTime() { waiting_since_.store(NowNanos(), std::memory_order_relaxed); }

}  // namespace stride
