// The wall clock steps while a thread waits: no wait ends early, and none lasts longer.
#include "server/base/steady_wait.h"

#include <atomic>
#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <thread>

#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "gtest/gtest.h"
#include "server/base/environment.h"
#include "server/base/timer.h"
#include "tests/support/wall_clock/wall_clock.h"

namespace stride {
namespace {

// An overloaded machine reaches it long after the end of the wait.
constexpr auto kPatience = std::chrono::seconds(90);
constexpr absl::Duration kShort = absl::Milliseconds(300);
constexpr absl::Duration kLong = absl::Minutes(30);

void StepWallClock(absl::Duration ahead) { stride_set_wall_clock(absl::ToInt64Nanoseconds(ahead)); }

// A thread that waits by one of the available primitives.
class Waiter {
 public:
  virtual ~Waiter() = default;
  // Calls `begun` when the wait can no longer miss later events; returns true if woken.
  virtual bool Wait(absl::Duration time, const std::function<void()>& begun) = 0;
  virtual void Wake() = 0;
};

class OnMutex : public Waiter {
 public:
  bool Wait(absl::Duration time, const std::function<void()>& begun) override {
    absl::MutexLock lock(&mutex_);
    begun();
    return Await(mutex_, absl::Condition(&woken_), Now() + time);
  }
  void Wake() override {
    absl::MutexLock lock(&mutex_);
    woken_ = true;
  }

 private:
  absl::Mutex mutex_;
  bool woken_ = false;
};

class OnNotification : public Waiter {
 public:
  bool Wait(absl::Duration time, const std::function<void()>& begun) override {
    begun();
    return Await(woken_, Now() + time);
  }
  void Wake() override { woken_.Notify(); }

 private:
  absl::Notification woken_;
};

class OnCondVar : public Waiter {
 public:
  bool Wait(absl::Duration time, const std::function<void()>& begun) override {
    absl::MutexLock lock(&mutex_);
    begun();
    const SteadyTime end = Now() + time;
    while (!woken_ && !SteadyWait(changed_, mutex_, end)) {
    }
    return woken_;
  }
  void Wake() override {
    absl::MutexLock lock(&mutex_);
    woken_ = true;
    changed_.Signal();
  }

 protected:
  absl::Mutex mutex_;
  absl::CondVar changed_;
  bool woken_ = false;
};

// As gRPC's timer thread waits.
class OfALibrary : public OnCondVar {
 public:
  bool Wait(absl::Duration time, const std::function<void()>& begun) override {
    absl::MutexLock lock(&mutex_);
    begun();
    while (!woken_ && !changed_.WaitWithTimeout(&mutex_, time)) {
    }
    return woken_;
  }
};

class OnTimer : public Waiter {
 public:
  bool Wait(absl::Duration time, const std::function<void()>& begun) override {
    timer_.At(Now() + time, [this] { rung_.Notify(); });
    begun();
    rung_.WaitForNotification();
    return woken_;
  }
  void Wake() override {
    woken_ = true;
    timer_.At(Now(), [this] { rung_.Notify(); });
  }

 private:
  Timer timer_;
  absl::Notification rung_;
  std::atomic<bool> woken_{false};
};

template <typename T>
class WallClockStepTest : public ::testing::Test {
 protected:
  ~WallClockStepTest() override { StepWallClock(absl::ZeroDuration()); }

  // Begins to wait, and steps the clock during the wait.
  void WaitAndStep(absl::Duration time, absl::Duration step) {
    std::promise<void> begun;
    woken_ = std::async(std::launch::async,
                        [&, time] { return waiter_.Wait(time, [&] { begun.set_value(); }); });
    begun.get_future().wait();
    // The thread must sleep for the test to detect a fault; a correct wait passes in any case.
    absl::SleepFor(absl::Milliseconds(50));
    StepWallClock(step);
  }

  T waiter_;
  std::future<bool> woken_;
};

using Waiters = ::testing::Types<OnMutex, OnNotification, OnCondVar, OfALibrary, OnTimer>;
TYPED_TEST_SUITE(WallClockStepTest, Waiters);

TYPED_TEST(WallClockStepTest, StepBackDoesNotExtendWaits) {
  this->WaitAndStep(kShort, -absl::Hours(1));
  const bool ended = this->woken_.wait_for(kPatience) == std::future_status::ready;
  EXPECT_TRUE(ended);
  if (!ended) this->waiter_.Wake();
  EXPECT_EQ(this->woken_.get(), !ended);
}

TYPED_TEST(WallClockStepTest, StepForwardDoesNotEndWaits) {
  this->WaitAndStep(kLong, absl::Hours(24));
  EXPECT_EQ(this->woken_.wait_for(std::chrono::milliseconds(300)), std::future_status::timeout);
  this->waiter_.Wake();
  EXPECT_EQ(this->woken_.wait_for(kPatience), std::future_status::ready);
  EXPECT_TRUE(this->woken_.get());
}

TEST(WallTimeTest, TimeKeepsItsDateUntilTheClockSteps) {
  const SteadyTime moment = Now();
  const absl::Time date = DateOf(moment);
  EXPECT_EQ(DateOf(moment), date);
  EXPECT_LT(absl::AbsDuration(date - WallNow()), absl::Minutes(1));
  EXPECT_LT(absl::AbsDuration(FromWallTime(date) - moment), absl::Minutes(1));
  StepWallClock(absl::Hours(24));
  EXPECT_GT(DateOf(moment) - date, absl::Hours(23));
  EXPECT_GT(ToWallTime(moment) - date, absl::Hours(23));
  EXPECT_LT(Now() - moment, absl::Hours(1));
  StepWallClock(absl::ZeroDuration());
}

}  // namespace
}  // namespace stride
