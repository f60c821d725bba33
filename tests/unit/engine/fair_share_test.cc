#include "server/engine/core/fair_share.h"

#include <cmath>
#include <deque>
#include <vector>

#include "gtest/gtest.h"
#include "server/base/steady_time.h"

namespace stride::engine {
namespace {

using Flow = FairShare::Flow;

constexpr FairShare::Options kOptions{.quantum = absl::Milliseconds(20),
                                      .yield_after = absl::Milliseconds(4),
                                      .hand_over = absl::Milliseconds(5)};

// A device that runs tasks in order, and queues that send as many as allowed.
class Device {
 public:
  struct DeviceQueue {
    Flow flow;
    double task_seconds = 0;
    int queued = 0;
    int in_flight = 0;
    double ran_seconds = 0;
  };

  DeviceQueue& Add(double weight, double task_seconds, int tasks) {
    DeviceQueue& queue = queues_.emplace_back();
    queue.flow.weight = weight;
    queue.task_seconds = task_seconds;
    queue.queued = tasks;
    return queue;
  }

  void RunFor(double seconds) {
    SteadyTime end = now_ + absl::Seconds(seconds);
    while (now_ < end) {
      Send();
      SteadyTime next = std::min(end, share_.wake());
      if (!running_.empty()) next = std::min(next, begun_ + Seconds(*running_.front()));
      now_ = std::max(now_, next);
      if (running_.empty() || now_ < begun_ + Seconds(*running_.front())) continue;
      DeviceQueue& queue = *running_.front();
      running_.pop_front();
      begun_ = now_;
      --queue.in_flight;
      queue.ran_seconds += queue.task_seconds;
      share_.Charge(queue.flow, queue.task_seconds, now_);
    }
  }

  FairShare& share() { return share_; }
  SteadyTime now() const { return now_; }

 private:
  static absl::Duration Seconds(const DeviceQueue& queue) {
    return absl::Seconds(queue.task_seconds);
  }

  void Send() {
    for (DeviceQueue& queue : queues_) Note(queue);
    share_.Advance(now_);
    for (DeviceQueue& queue : queues_) {
      while (queue.queued > 0 && queue.in_flight < 256 &&
             share_.Allowance(queue.flow, now_) > queue.in_flight * queue.task_seconds) {
        --queue.queued;
        ++queue.in_flight;
        if (running_.empty()) begun_ = now_;
        running_.push_back(&queue);
      }
      Note(queue);
    }
  }
  void Note(DeviceQueue& queue) {
    share_.Update(queue.flow, queue.queued > 0, queue.in_flight > 0, now_);
  }

  FairShare share_{kOptions};
  std::deque<DeviceQueue> queues_;
  std::deque<DeviceQueue*> running_;
  SteadyTime now_ = SteadyTime::SinceBoot(absl::Seconds(1));
  SteadyTime begun_;
};

// `a` has the turn and a task in flight; then `b` begins to wait. Returns that time.
SteadyTime BeginOneAndLetAnotherWait(FairShare& share, Flow& a, Flow& b) {
  const SteadyTime now = SteadyTime::SinceBoot(absl::Seconds(1));
  share.Update(a, true, false, now);
  share.Advance(now);
  share.Update(a, true, true, now);
  share.Update(b, true, false, now);
  return now;
}

TEST(FairShareTest, DeviceTimeIsSharedByWeight) {
  Device device;
  auto& one = device.Add(1, 100e-6, 1 << 20);
  auto& three = device.Add(3, 100e-6, 1 << 20);
  device.RunFor(10);
  EXPECT_NEAR(one.ran_seconds, 2.5, 0.05);
  EXPECT_NEAR(three.ran_seconds, 7.5, 0.05);
}

TEST(FairShareTest, ShareCountsDeviceTimeNotTasks) {
  Device device;
  auto& small = device.Add(1, 20e-6, 1 << 20);
  auto& large = device.Add(1, 7e-3, 1 << 20);
  device.RunFor(10);
  EXPECT_NEAR(small.ran_seconds, 5, 0.1);
  EXPECT_NEAR(large.ran_seconds, 5, 0.1);
}

TEST(FairShareTest, ThreeTenantsJoinAndLeave) {
  Device device;
  auto& first = device.Add(1, 1e-3, 1 << 20);
  device.RunFor(5);
  EXPECT_NEAR(first.ran_seconds, 5, 0.01) << "alone it has all";
  auto& second = device.Add(1, 1e-3, 1 << 20);
  auto& third = device.Add(2, 1e-3, 1000);
  device.RunFor(4);
  EXPECT_NEAR(second.ran_seconds, third.ran_seconds + 0.5, 0.1) << "third had one second of work";
  EXPECT_NEAR(first.ran_seconds - 5, second.ran_seconds, 0.3)
      << "nobody is paid back for time in which it wanted nothing";
}

TEST(FairShareTest, SingleQueueIsUnbounded) {
  Device device;
  auto& queue = device.Add(1, 10, 1000);
  device.RunFor(1e-3);
  EXPECT_EQ(queue.in_flight, 256);
  EXPECT_TRUE(std::isinf(device.share().Allowance(queue.flow, device.now())));
  EXPECT_EQ(device.share().wake(), SteadyTime::InfiniteFuture());
}

TEST(FairShareTest, FewTasksAreInFlightWhileOthersWait) {
  Device device;
  auto& first = device.Add(1, 1e-3, 1 << 20);
  auto& second = device.Add(1, 1e-3, 1 << 20);
  for (int i = 0; i < 1000; ++i) {
    device.RunFor(1e-3);
    EXPECT_LE(first.in_flight, 5);
    EXPECT_LE(second.in_flight, 5);
    EXPECT_TRUE(first.in_flight == 0 || second.in_flight == 0) << "one at a time";
  }
}

// A queue with occasional tasks waits only for tasks in flight, not for a quantum. The other queues
// share the rest equally.
TEST(FairShareTest, WakingQueueGetsTheNextTurn) {
  Device device;
  auto& first = device.Add(1, 200e-6, 1 << 20);
  auto& second = device.Add(1, 200e-6, 1 << 20);
  auto& quiet = device.Add(1, 100e-6, 0);
  device.RunFor(1);
  double longest = 0;
  for (int i = 1; i <= 500; ++i) {
    quiet.queued = 1;
    const SteadyTime asked = device.now();
    while (quiet.queued + quiet.in_flight > 0) device.RunFor(100e-6);
    longest = std::max(longest, absl::ToDoubleSeconds(device.now() - asked));
    device.RunFor((i * 7 % 23) * 1e-3);
  }
  EXPECT_LT(longest, 9e-3);
  EXPECT_NEAR(first.ran_seconds, second.ran_seconds, 0.02 * first.ran_seconds);
}

// A waking queue does not pass queues that used less: bursts get the share of a single burst.
TEST(FairShareTest, FrequentWakeupsGiveNoExtraShare) {
  Device device;
  auto& steady = device.Add(2, 200e-6, 1 << 20);
  auto& bursts = device.Add(1, 200e-6, 0);
  for (int i = 0; i < 2000; ++i) {
    bursts.queued = 1 + i % 40;
    while (bursts.queued + bursts.in_flight > 0) device.RunFor(200e-6);
  }
  EXPECT_GE(steady.ran_seconds, 1.9 * bursts.ran_seconds);
}

// A turn is short for a queue that has just woken up, and a quantum for busy queues.
TEST(FairShareTest, BusyQueuesAlternateOncePerQuantum) {
  FairShare share(kOptions);
  Flow a, b;
  SteadyTime now = BeginOneAndLetAnotherWait(share, a, b);
  now += kOptions.yield_after;
  for (int i = 0; i < 10; ++i) {
    Flow& holder = i % 2 == 0 ? a : b;
    share.Charge(holder, 1e-3, now);
    share.Update(holder, true, false, now);
    share.Advance(now);
    Flow& next = i % 2 == 0 ? b : a;
    EXPECT_EQ(share.TakeTurn(), &next) << i;
    share.Update(next, true, true, now);
    EXPECT_EQ(share.wake(), now + kOptions.quantum);
    now = share.wake();
  }
}

TEST(FairShareTest, EmptyQueueYieldsItsTurnAtOnce) {
  FairShare share(kOptions);
  Flow a, b;
  SteadyTime now = SteadyTime::SinceBoot(absl::Seconds(1));
  share.Update(a, true, false, now);
  share.Advance(now);
  EXPECT_EQ(share.TakeTurn(), &a);
  share.Update(a, false, true, now);
  share.Update(b, true, false, now);
  share.Advance(now);
  EXPECT_EQ(share.Allowance(b, now), 0);
  now += absl::Milliseconds(1);
  share.Charge(a, 1e-3, now);
  share.Update(a, false, false, now);
  share.Advance(now);
  EXPECT_EQ(share.TakeTurn(), &b);
  EXPECT_TRUE(std::isinf(share.Allowance(b, now)));
}

TEST(FairShareTest, EndlessTaskDelaysOthersByYieldAndHandOver) {
  FairShare share(kOptions);
  Flow endless, b, c;
  SteadyTime now = SteadyTime::SinceBoot(absl::Seconds(1));
  share.Update(endless, true, false, now);
  share.Advance(now);
  share.Update(endless, true, true, now);
  share.Update(b, true, false, now);
  share.Update(c, true, false, now);
  share.Advance(now);
  EXPECT_EQ(share.TakeTurn(), &endless);
  EXPECT_EQ(share.wake(), now + kOptions.yield_after);
  now = share.wake();
  share.Advance(now);
  EXPECT_EQ(share.TakeTurn(), nullptr) << "what is in flight may end";
  EXPECT_EQ(share.Allowance(endless, now), 0);
  EXPECT_EQ(share.wake(), now + kOptions.hand_over);
  now = share.wake();
  share.Advance(now);
  EXPECT_EQ(share.TakeTurn(), &b);
  share.Update(c, false, false, now);
  EXPECT_NEAR(share.Allowance(b, now), 20e-3, 1e-6) << "or the endless one would have to wait, too";
  share.Update(c, true, false, now);
  // From here on the others alternate: the endless task gets its share by the device's time slices.
  for (int i = 0; i < 10; ++i) {
    Flow& holder = i % 2 == 0 ? b : c;
    share.Update(holder, true, true, now);
    now += kOptions.quantum;
    share.Charge(holder, 20e-3, now);
    share.Update(holder, true, false, now);
    share.Advance(now);
    EXPECT_EQ(share.TakeTurn(), i % 2 == 0 ? &c : &b);
  }
  // It ends and is charged in full.
  share.Charge(endless, 0.225, now);
  share.Update(endless, true, false, now);
  for (int i = 0; i < 6; ++i) {
    Flow& holder = i % 2 == 0 ? b : c;
    share.Update(holder, true, true, now);
    now += kOptions.quantum;
    share.Charge(holder, 20e-3, now);
    share.Update(holder, true, false, now);
    share.Advance(now);
    EXPECT_NE(share.TakeTurn(), &endless) << "it had more than they";
  }
}

TEST(FairShareTest, TaskBegunAloneIsNotChargedLater) {
  FairShare share(kOptions);
  Flow a, b;
  SteadyTime now = SteadyTime::SinceBoot(absl::Seconds(1));
  share.Update(a, true, false, now);
  share.Advance(now);
  share.Update(a, true, true, now);
  now += absl::Seconds(10);
  share.Update(b, true, false, now);
  share.Advance(now);
  now += absl::Milliseconds(1);
  share.Charge(a, 10.001, now);
  share.Update(a, true, false, now);
  share.Advance(now);
  EXPECT_EQ(share.TakeTurn(), &b);
  share.Update(b, true, true, now);
  now += kOptions.quantum;
  share.Charge(b, 20e-3, now);
  share.Update(b, true, false, now);
  share.Advance(now);
  EXPECT_EQ(share.TakeTurn(), &a) << "b was not there for those ten seconds";
}

// Small tasks of a process that the host suspended for a while. Clock time without device time is
// not charged to a queue that arrived later.
TEST(FairShareTest, IdleClockTimeIsNotCharged) {
  FairShare share(kOptions);
  Flow busy, quiet;
  SteadyTime now = SteadyTime::SinceBoot(absl::Seconds(1));
  share.Update(busy, true, false, now);
  share.Advance(now);
  EXPECT_EQ(share.TakeTurn(), &busy);
  share.Update(busy, true, true, now);
  for (int round = 0; round < 100; ++round) {
    now += absl::Milliseconds(40);
    share.Update(quiet, true, false, now);
    share.Advance(now);
    now += kOptions.quantum;
    share.Charge(busy, 1e-3, now);  // while the clock advances by 60 ms
    if (round % 3 == 0) share.Update(busy, true, false, now);
    share.Update(busy, true, true, now);
    share.Advance(now);
    now += kOptions.hand_over;
    share.Charge(busy, 1e-5, now);
    share.Advance(now);
    ASSERT_EQ(share.TakeTurn(), &quiet) << "round " << round;
    share.Update(quiet, false, true, now);
    now += absl::Microseconds(20);
    share.Charge(quiet, 1e-5, now);
    share.Update(quiet, false, false, now);
    share.Update(busy, true, false, now);
    share.Advance(now);
    ASSERT_EQ(share.TakeTurn(), &busy);
    share.Update(busy, true, true, now);
  }
}

TEST(FairShareTest, SingleQueueIsFedDuringLongTask) {
  FairShare share(kOptions);
  Flow a, b;
  SteadyTime now = BeginOneAndLetAnotherWait(share, a, b);
  for (int i = 0; i < 2; ++i) {
    now += kOptions.quantum;
    share.Advance(now);
  }
  EXPECT_TRUE(a.overdue);
  share.Update(b, false, false, now);
  share.Advance(now);
  EXPECT_TRUE(std::isinf(share.Allowance(a, now)));
  share.Update(b, true, false, now);
  share.Advance(now);
  EXPECT_GT(share.Allowance(b, now), 0) << "the next one need not wait for it again";
}

// Tasks with long gaps: the tasks sent must take about one quantum on the clock.
TEST(FairShareTest, TimeBetweenTasksCountsTowardsQuantum) {
  FairShare share(kOptions);
  Flow a, b;
  SteadyTime now = SteadyTime::SinceBoot(absl::Seconds(1));
  share.Update(a, true, false, now);
  share.Update(b, true, false, now);
  for (int turn = 0; turn < 40; ++turn) {
    share.Advance(now);
    Flow& holder = *share.TakeTurn();
    share.Update(holder, true, true, now);
    now += kOptions.quantum;
    share.Charge(holder, 2e-3, now);  // a tenth of it was measured
    share.Update(holder, true, false, now);
  }
  share.Advance(now);
  Flow& holder = *share.TakeTurn();
  EXPECT_NEAR(share.Allowance(holder, now), 0.4e-3, 0.1e-3);
}

}  // namespace
}  // namespace stride::engine
