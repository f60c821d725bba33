#include "server/base/environment.h"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>

#include "server/base/spin.h"
#include "server/base/steady_wait.h"

namespace stride {
namespace {

constexpr int64_t kOrdinaryCorrectionNanos = 100'000'000;

// Wall clock minus steady clock.
absl::Duration WallAhead() {
  Environment* simulated = simulated_environment;
  const SteadyTime now = simulated == nullptr ? MachineTime() : simulated->Now();
  return (WallNow() - absl::UnixEpoch()) - now.since_boot();
}

}  // namespace

absl::Time WallNow() {
  return simulated_environment == nullptr ? absl::FromChrono(std::chrono::system_clock::now())
                                          : simulated_environment->WallNow();
}

absl::Time ToWallTime(SteadyTime time) {
  return absl::UnixEpoch() + time.since_boot() + WallAhead();
}

SteadyTime FromWallTime(absl::Time time) {
  return SteadyTime::SinceBoot(time - absl::UnixEpoch() - WallAhead());
}

absl::Time DateOf(SteadyTime time) {
  if (simulated_environment != nullptr) return ToWallTime(time);
  const int64_t ahead = absl::ToInt64Nanoseconds(WallAhead());
  static std::atomic<int64_t> known{ahead};
  int64_t used = known.load(std::memory_order_relaxed);
  if (std::abs(ahead - used) > kOrdinaryCorrectionNanos) {
    known.store(ahead, std::memory_order_relaxed);
    used = ahead;
  }
  return absl::UnixEpoch() + time.since_boot() + absl::Nanoseconds(used);
}

bool Await(absl::Mutex& mutex, const absl::Condition& condition, SteadyTime deadline) {
  Environment* simulated = simulated_environment;
  if (simulated == nullptr) return SteadyAwait(mutex, condition, deadline);
  while (!condition.Eval() && simulated->Now() < deadline) {
    mutex.Unlock();
    simulated->Wait(
        [&] {
          absl::MutexLock lock(&mutex);
          return condition.Eval();
        },
        deadline);
    mutex.Lock();
  }
  return condition.Eval();
}

bool Await(const absl::Notification& notification, SteadyTime deadline) {
  Environment* simulated = simulated_environment;
  if (simulated == nullptr) {
    return SpinUntil([&] { return notification.HasBeenNotified(); }, kWatch) ||
           SteadyAwait(notification, deadline);
  }
  simulated->Wait([&] { return notification.HasBeenNotified(); }, deadline);
  return notification.HasBeenNotified();
}

}  // namespace stride
