#pragma once

#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "server/base/steady_time.h"

namespace stride {

// The waits of absl::Mutex, CondVar and Notification with an end on the monotonic clock. The
// library's own timed waits end on the wall clock: when that steps back by an hour, they last an
// hour longer. In a program that links this file, the timed waits of other libraries (gRPC's
// timers) also end after the time that remained when they began, despite steps of the wall clock.

// Like Mutex::AwaitWithDeadline: whether the condition holds. Caller holds the mutex.
bool SteadyAwait(absl::Mutex& mutex, const absl::Condition& condition, SteadyTime deadline);
// Like CondVar::WaitWithDeadline: true when the deadline passed. Caller holds the mutex.
bool SteadyWait(absl::CondVar& changed, absl::Mutex& mutex, SteadyTime deadline);
// Like Notification::WaitForNotificationWithDeadline: whether it was notified.
bool SteadyAwait(const absl::Notification& notification, SteadyTime deadline);

}  // namespace stride
