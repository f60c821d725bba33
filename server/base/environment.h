#pragma once

#include <functional>
#include <string>
#include <utility>

#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "server/base/steady_time.h"

namespace stride {

// Replaces the machine's time, threads, waits and randomness: a simulation of the daemon's parts
// derives all of them from one seed and runs one thing at a time. `owner` is the calling Timer or
// Executor.
class Environment {
 public:
  virtual ~Environment() = default;
  virtual SteadyTime Now() = 0;
  // May step, as after `date --set`.
  virtual absl::Time WallNow() = 0;
  virtual void At(const void* owner, SteadyTime time, std::function<void()> work) = 0;
  virtual void Run(const void* owner, std::function<void()> work) = 0;
  // Drops the owner's pending work.
  virtual void Forget(const void* owner) = 0;
  // Returns when the owner has no pending work.
  virtual void Finish(const void* owner) = 0;
  // Runs other work until `ready` returns true or the deadline. The caller holds no lock that the
  // other work may need.
  virtual void Wait(const std::function<bool()>& ready, SteadyTime deadline) = 0;
  virtual std::string RandomId(int length) = 0;
};

// Null except in a simulation, which sets it before it creates any other object. Costs a load and a
// branch.
inline Environment* simulated_environment = nullptr;

// The time that Now() returns on this thread while a FrozenClock lives; null otherwise.
inline thread_local const SteadyTime* frozen_time = nullptr;

inline SteadyTime Now() {
  if (frozen_time != nullptr) return *frozen_time;
  return simulated_environment == nullptr ? MachineTime() : simulated_environment->Now();
}

// The date, for display and for times that survive a reboot; no wait uses it.
absl::Time WallNow();
// Convert between both clocks by their present difference.
absl::Time ToWallTime(SteadyTime time);
SteadyTime FromWallTime(absl::Time time);
// The date of a moment, for dates that clients query repeatedly. The answer stays the same while
// the wall clock does not step and its ordinary corrections sum to less than 0.1 s.
absl::Time DateOf(SteadyTime time);

// Freezes Now() of its thread while it lives: for a sequence of small steps that never waits and
// counts as one moment. Saves the steps the clock reads.
class FrozenClock {
 public:
  FrozenClock() : time_(Now()), outer_(std::exchange(frozen_time, &time_)) {}
  ~FrozenClock() { frozen_time = outer_; }
  FrozenClock(const FrozenClock&) = delete;
  FrozenClock& operator=(const FrozenClock&) = delete;

 private:
  const SteadyTime time_;
  const SteadyTime* const outer_;
};

// Replace absl::Mutex::AwaitWithDeadline and Notification::WaitForNotificationWithDeadline, which
// wait by the wall clock and are used nowhere else (base/steady_wait.h).
bool Await(absl::Mutex& mutex, const absl::Condition& condition, SteadyTime deadline);
bool Await(const absl::Notification& notification, SteadyTime deadline);

}  // namespace stride
