#include "server/base/surroundings.h"

#include "server/base/spin.h"

namespace stride {

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
    return SpinUntil([&] { return notification.HasBeenNotified(); }, kWatch) ||
           notification.WaitForNotificationWithDeadline(deadline);
  }
  simulated->Wait([&] { return notification.HasBeenNotified(); }, deadline);
  return notification.HasBeenNotified();
}

}  // namespace stride
