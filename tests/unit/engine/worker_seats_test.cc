#include "server/engine/core/worker_seats.h"

#include <unistd.h>

#include <array>

#include "gtest/gtest.h"
#include "server/engine/core/worker_measure.h"

namespace stride::engine {
namespace {

using Seat = WorkerSeats::Seat;

const SteadyTime kNow = SteadyTime::SinceBoot(absl::Seconds(1000));

class WorkerSeatsTest : public ::testing::Test {
 protected:
  WorkerSeatsTest() {
    for (Seat& seat : seats_) seat.device = 0;
  }
  // Begins a start and completes it.
  Seat* Start() {
    Seat* seat = line_.Begin(kNow);
    if (seat != nullptr) line_.Started(*seat, kNow);
    return seat;
  }
  const Seat* Blocked(SteadyTime now = kNow) {
    bool for_any = false;
    return line_.Blocked(now, &for_any);
  }

  WorkerSeats line_{2, {.at_once = 2}};
  std::array<Seat, 6> seats_;
};

TEST_F(WorkerSeatsTest, StartsInOrderOfArrivalAndFewAtOnce) {
  for (Seat& seat : seats_) line_.Wait(seat, kNow);
  line_.Wait(seats_[0], kNow);  // again: it keeps its place
  EXPECT_EQ(line_.Begin(kNow), &seats_[0]);
  EXPECT_EQ(line_.Begin(kNow), &seats_[1]);
  EXPECT_EQ(line_.Begin(kNow), nullptr) << "two are starting";
  EXPECT_EQ(Blocked(), nullptr) << "it waits for no room";
  line_.Started(seats_[1], kNow);
  EXPECT_EQ(line_.Begin(kNow), &seats_[2]);
  line_.Failed(seats_[0]);
  line_.Wait(seats_[0], kNow);
  EXPECT_EQ(line_.Begin(kNow), &seats_[3]) << "one that failed is the last again";
}

TEST_F(WorkerSeatsTest, FullDeviceWithLongWaitIsCrowded) {
  line_.set_most(0, 2);
  const SteadyTime later = kNow + absl::Seconds(2);
  for (int i = 0; i < 2; ++i) {
    line_.Wait(seats_[i], kNow);
    ASSERT_NE(Start(), nullptr);
  }
  EXPECT_FALSE(line_.IsCrowded(0, later)) << "no lane waits";
  line_.Wait(seats_[2], kNow);
  EXPECT_FALSE(line_.IsCrowded(0, kNow)) << "the lane has only begun to wait";
  EXPECT_TRUE(line_.IsCrowded(0, later));
  EXPECT_FALSE(line_.IsCrowded(1, later)) << "the lane waits for the other device";
  line_.Crowded(0, 1, later);
  EXPECT_EQ(line_.most(0, later), 1);
  line_.Free(seats_[0]);
  EXPECT_EQ(line_.Begin(later), nullptr) << "one worker is left, the bound of a crowd";
  const SteadyTime after = later + absl::Minutes(2);
  EXPECT_EQ(line_.most(0, after), 2) << "the bound ends";
  EXPECT_EQ(line_.Begin(after), &seats_[2]);
}

TEST_F(WorkerSeatsTest, DeviceWithRoomIsNotCrowded) {
  line_.set_most(0, 4);
  for (Seat& seat : seats_) line_.Wait(seat, kNow);
  ASSERT_NE(Start(), nullptr);
  EXPECT_FALSE(line_.IsCrowded(0, kNow + absl::Minutes(1)))
      << "lanes wait for starts, not for room";
}

TEST_F(WorkerSeatsTest, FullDeviceDelaysNoOther) {
  line_.set_most(0, 1);
  seats_[2].device = 1;
  for (int i = 0; i < 3; ++i) line_.Wait(seats_[i], kNow);
  EXPECT_EQ(Start(), &seats_[0]);
  EXPECT_EQ(Start(), &seats_[2]);
  EXPECT_EQ(Start(), nullptr);
  EXPECT_EQ(Blocked(), &seats_[1]);
  line_.Free(seats_[0]);
  EXPECT_EQ(Blocked(), nullptr);
  EXPECT_EQ(Start(), &seats_[1]);
}

TEST_F(WorkerSeatsTest, TheMachineBoundsAllDevicesTogether) {
  line_.set_most_of_all(2);
  seats_[1].device = seats_[2].device = 1;
  for (int i = 0; i < 3; ++i) line_.Wait(seats_[i], kNow);
  EXPECT_EQ(Start(), &seats_[0]);
  EXPECT_EQ(Start(), &seats_[1]);
  EXPECT_EQ(Start(), nullptr);
  bool for_any = false;
  EXPECT_EQ(line_.Blocked(kNow, &for_any), &seats_[2]);
  EXPECT_TRUE(for_any) << "a worker's end anywhere makes room";
}

// At least one worker has room: a device without room would serve no tenant.
TEST_F(WorkerSeatsTest, OneWorkerAlwaysHasRoom) {
  line_.set_most(0, 0);
  line_.set_most_of_all(0);
  line_.Wait(seats_[0], kNow);
  EXPECT_EQ(Start(), &seats_[0]);
  EXPECT_EQ(line_.most(0, kNow), 1);
}

TEST_F(WorkerSeatsTest, FailedStartLowersLimitForAWhile) {
  for (int i = 0; i < 4; ++i) line_.Wait(seats_[i], kNow);
  EXPECT_EQ(Start(), &seats_[0]);
  EXPECT_EQ(Start(), &seats_[1]);
  ASSERT_EQ(line_.Begin(kNow), &seats_[2]);
  line_.Failed(seats_[2]);
  line_.Lacked(0, WorkerSeats::Lack::kDevice, kNow);
  line_.WaitAgain(seats_[2], kNow);
  EXPECT_EQ(line_.most(0, kNow), 2) << "so many were there";
  EXPECT_EQ(line_.most(1, kNow), line_.most_of_all(kNow)) << "no lesson for another device";
  EXPECT_EQ(line_.Begin(kNow), nullptr);
  EXPECT_LT(line_.next_try(kNow), SteadyTime::InfiniteFuture());
  line_.Gone();
  EXPECT_EQ(Blocked(), &seats_[2]) << "still full: two are there";
  line_.Free(seats_[0]);
  EXPECT_EQ(line_.Begin(kNow), &seats_[2]) << "before those who came later";
  EXPECT_EQ(line_.Begin(kNow + absl::Minutes(2)), &seats_[3]) << "it may be different by now";
}

TEST_F(WorkerSeatsTest, StartsWithoutResourcesBackOff) {
  SteadyTime now = kNow;
  absl::Duration last;
  for (int i = 0; i < 10; ++i) {
    line_.Lacked(0, WorkerSeats::Lack::kMachine, now);
    line_.Wait(seats_[0], now);
    const absl::Duration pause = line_.next_try(now) - now;
    EXPECT_GE(pause, last);
    EXPECT_LE(pause, absl::Seconds(1));
    EXPECT_EQ(line_.Begin(now), nullptr);
    now += pause;
    last = pause;
  }
  EXPECT_EQ(last, absl::Seconds(1));
  EXPECT_EQ(line_.Begin(now), &seats_[0]);
}

TEST_F(WorkerSeatsTest, QueueThatStopsWaitingIsNotStarted) {
  for (int i = 0; i < 2; ++i) line_.Wait(seats_[i], kNow);
  line_.Leave(seats_[0]);
  EXPECT_EQ(Start(), &seats_[1]);
  EXPECT_EQ(Start(), nullptr);
  EXPECT_FALSE(line_.waiting());
}

TEST(WorkerRoomTest, RoomIsMemoryDividedByWorkerCost) {
  const double gib = 1 << 30;
  // A GPU of 80 GB with 1,000 small arrays' arenas.
  EXPECT_EQ(WorkersThatFit(80 * gib, 18 * gib, 0.62 * gib), 100);
  EXPECT_EQ(WorkersThatFit(80 * gib, 90 * gib, 0.62 * gib), 4) << "a few in any case";
}

TEST(WorkerCostsTest, CostsAreMeasuredFromSeveralWorkers) {
  WorkerCosts costs(1);
  const double first = costs.device_bytes(0);
  const int64_t mib = 1 << 20;
  costs.DeviceUsed(0, 500 * mib, 0, 0);
  costs.DeviceUsed(0, 40000 * mib, 0, 1);
  EXPECT_EQ(costs.device_bytes(0), first) << "other processes' memory";
  EXPECT_EQ(costs.device_bytes_before(0), 500 * mib);
  for (int i = 0; i < 100; ++i) costs.DeviceUsed(0, (500 + 2000 + 50 * 540) * mib, 2000 * mib, 50);
  EXPECT_NEAR(costs.device_bytes(0), 540.0 * mib, 1.0 * mib);
  for (int i = 0; i < 100; ++i) costs.Measured({{30 * mib, 6}, {50 * mib, 10}});
  EXPECT_NEAR(costs.host_bytes(), 40.0 * mib, 1.0 * mib);
  EXPECT_NEAR(costs.num_threads(), 8, 0.1);
}

TEST(WorkerCostsTest, ProcessMemoryIsReadFromProc) {
  const auto use = ReadProcessUse(getpid());
  ASSERT_TRUE(use.has_value());
  EXPECT_GT(use->private_bytes, 0);
  EXPECT_GE(use->num_threads, 1);
  EXPECT_LT(use->num_threads, 1000);
  EXPECT_FALSE(ReadProcessUse(-1).has_value());
}

}  // namespace
}  // namespace stride::engine
