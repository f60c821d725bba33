#include "server/base/surroundings.h"

#include "server/base/spin.h"

namespace stride {
namespace {

// A small job on a GPU has ended within it.
constexpr absl::Duration kShortWait = absl::Microseconds(100);

}  // namespace

bool Await(absl::Mutex& mutex, const absl::Condition& condition, absl::Time deadline) {
  Surroundings* simulated = simulated_surroundings;
  if (simulated == nullptr) return mutex.AwaitWithDeadline(condition, deadline);
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

bool Await(const absl::Notification& notification, absl::Time deadline) {
  Surroundings* simulated = simulated_surroundings;
  if (simulated == nullptr) {
    return SpinUntil([&] { return notification.HasBeenNotified(); }, kShortWait) ||
           notification.WaitForNotificationWithDeadline(deadline);
  }
  simulated->Wait([&] { return notification.HasBeenNotified(); }, deadline);
  return notification.HasBeenNotified();
}

}  // namespace stride
