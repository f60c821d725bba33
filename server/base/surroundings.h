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

// Time, threads, waiting and chance, in place of the machine's: a simulation of the daemon's parts
// gives them all from one seed, and runs one thing at a time. `owner` is the Timer or Executor that
// asks.
class Surroundings {
 public:
  virtual ~Surroundings() = default;
  virtual SteadyTime Now() = 0;
  // May step, as an administrator's `date --set` makes it.
  virtual absl::Time WallNow() = 0;
  virtual void At(const void* owner, SteadyTime time, std::function<void()> work) = 0;
  virtual void Run(const void* owner, std::function<void()> work) = 0;
  // Drops what the owner still has to do.
  virtual void Forget(const void* owner) = 0;
  // Returns when the owner has nothing more to do.
  virtual void Finish(const void* owner) = 0;
  // Lets others go on until `ready` or the deadline. Called with no lock held that they may want.
  virtual void Wait(const std::function<bool()>& ready, SteadyTime deadline) = 0;
  virtual std::string RandomId(int length) = 0;
};

// Null but in a simulation, which sets it before it makes anything else. Costs a load and a branch.
inline Surroundings* simulated_surroundings = nullptr;

// What Now() of this thread is, by OneMoment.
inline thread_local const SteadyTime* standing_moment = nullptr;

inline SteadyTime Now() {
  if (standing_moment != nullptr) return *standing_moment;
  return simulated_surroundings == nullptr ? MachineTime() : simulated_surroundings->Now();
}

// The date, for what people read and for what survives a reboot; nothing waits by it.
absl::Time WallNow();
// The date at a moment and back, by the difference of the two clocks as it is now.
absl::Time ToWallTime(SteadyTime time);
SteadyTime FromWallTime(absl::Time time);
// Returns the same date for one moment as long as the wall clock does not step and its ordinary
// corrections add up to less than 0.1 s. For dates that clients query repeatedly.
absl::Time DateOf(SteadyTime time);

// While it lives, Now() of its thread stays what it was: for a stretch of small steps that waits
// for nothing and is one moment to all that it does. It spares them the reading of the clock.
class OneMoment {
 public:
  OneMoment() : time_(Now()), outer_(std::exchange(standing_moment, &time_)) {}
  ~OneMoment() { standing_moment = outer_; }
  OneMoment(const OneMoment&) = delete;
  OneMoment& operator=(const OneMoment&) = delete;

 private:
  const SteadyTime time_;
  const SteadyTime* const outer_;
};

// As absl::Mutex::AwaitWithDeadline and Notification::WaitForNotificationWithDeadline, which
// nothing else may use: they wait by the wall clock (base/steady_wait.h).
bool Await(absl::Mutex& mutex, const absl::Condition& condition, SteadyTime deadline);
bool Await(const absl::Notification& notification, SteadyTime deadline);

}  // namespace stride
