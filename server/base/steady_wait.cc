#include "server/base/steady_wait.h"

#include <algorithm>

#include "absl/base/config.h"
#include "absl/time/clock.h"

// Later versions measure a relative timeout on the monotonic clock themselves.
#if defined(ABSL_LTS_RELEASE_VERSION) && ABSL_LTS_RELEASE_VERSION < 20230802
#define STRIDE_WALL_CLOCK_WAITS 1
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <ctime>

#include "absl/synchronization/internal/create_thread_identity.h"
#include "absl/synchronization/internal/kernel_timeout.h"
#include "absl/synchronization/internal/per_thread_sem.h"
#include "absl/synchronization/internal/waiter.h"
#endif

namespace stride {
namespace {

absl::Duration Rest(SteadyTime deadline) {
  return std::max(deadline - MachineTime(), absl::ZeroDuration());
}

#ifdef STRIDE_WALL_CLOCK_WAITS
// End of this thread's timed wait; null: no wait of this file.
thread_local const SteadyTime* wait_end = nullptr;

// While it lives, timed waits of this thread in Abseil end at this time.
class WaitEnd {
 public:
  explicit WaitEnd(SteadyTime end) : end_(end) { wait_end = &end_; }
  ~WaitEnd() { wait_end = nullptr; }
  WaitEnd(const WaitEnd&) = delete;
  WaitEnd& operator=(const WaitEnd&) = delete;

 private:
  const SteadyTime end_;
};
#else
struct WaitEnd {
  explicit WaitEnd(SteadyTime /*end*/) {}
};
#endif

}  // namespace

bool SteadyAwait(absl::Mutex& mutex, const absl::Condition& condition, SteadyTime deadline) {
  if (deadline == SteadyTime::InfiniteFuture()) {
    mutex.Await(condition);
    return true;
  }
  const WaitEnd end(deadline);
  return mutex.AwaitWithTimeout(condition, Rest(deadline));
}

bool SteadyWait(absl::CondVar& changed, absl::Mutex& mutex, SteadyTime deadline) {
  if (deadline == SteadyTime::InfiniteFuture()) {
    changed.Wait(&mutex);
    return false;
  }
  const WaitEnd end(deadline);
  return changed.WaitWithTimeout(&mutex, Rest(deadline));
}

bool SteadyAwait(const absl::Notification& notification, SteadyTime deadline) {
  if (deadline == SteadyTime::InfiniteFuture()) {
    notification.WaitForNotification();
    return true;
  }
  const WaitEnd end(deadline);
  return notification.WaitForNotificationWithTimeout(Rest(deadline));
}

}  // namespace stride

#ifdef STRIDE_WALL_CLOCK_WAITS
namespace stride {
namespace {

using absl::synchronization_internal::KernelTimeout;
using absl::synchronization_internal::Waiter;

static_assert(ABSL_WAITER_MODE == ABSL_WAITER_MODE_FUTEX &&
                  sizeof(Waiter) == sizeof(std::atomic<int32_t>),
              "this version of abseil waits in another way: SleepUntil has to follow it");

absl::Time SystemNow() { return absl::FromChrono(std::chrono::system_clock::now()); }

// The end of a wait that another library set on the wall clock. absl::Now() notices a step up to
// two seconds late, and some ends come from the system's clock. The earlier one is never too late.
SteadyTime EndOf(KernelTimeout timeout) {
  const absl::Time end = absl::TimeFromTimespec(timeout.MakeAbsTimespec());
  return MachineTime() + std::min(end - absl::Now(), end - SystemNow());
}

// Like Waiter::Wait, on the monotonic clock: consumes one post, or returns at `end`.
bool SleepUntil(Waiter* waiter, SteadyTime end) {
  auto* posts = reinterpret_cast<std::atomic<int32_t>*>(waiter);
  const timespec until = absl::ToTimespec(std::max(end - SteadyTime(), absl::ZeroDuration()));
  while (true) {
    int32_t count = posts->load(std::memory_order_relaxed);
    while (count != 0) {
      if (posts->compare_exchange_weak(count, count - 1, std::memory_order_acquire,
                                       std::memory_order_relaxed))
        return true;
    }
    const int64_t result = syscall(SYS_futex, posts, FUTEX_WAIT_BITSET | FUTEX_PRIVATE_FLAG, 0,
                                   &until, nullptr, FUTEX_BITSET_MATCH_ANY);
    if (result != 0 && errno == ETIMEDOUT) return false;
  }
}

}  // namespace
}  // namespace stride

// Replaces Abseil's function, a weak symbol for that purpose.
extern "C" bool ABSL_INTERNAL_C_SYMBOL(AbslInternalPerThreadSemWait)(
    absl::synchronization_internal::KernelTimeout timeout) {
  auto* waiter =
      stride::Waiter::GetWaiter(absl::synchronization_internal::GetOrCreateCurrentThreadIdentity());
  if (!timeout.has_timeout()) return waiter->Wait(timeout);
  return stride::SleepUntil(
      waiter, stride::wait_end != nullptr ? *stride::wait_end : stride::EndOf(timeout));
}
#endif
