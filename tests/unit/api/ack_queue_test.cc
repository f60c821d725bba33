#include "server/api/ack_queue.h"

#include <atomic>
#include <thread>

#include "absl/time/clock.h"
#include "gtest/gtest.h"

namespace stride::api {
namespace {

PendingAck Ready(uint64_t id) {
  PendingAck ack;
  ack.result = std::make_shared<v1::CommandResult>();
  ack.result->set_id(id);
  return ack;
}

TEST(AckQueueTest, FullUntilTheOldestIsDone) {
  AckQueue queue(2);
  ASSERT_TRUE(queue.Push(Ready(1)));
  ASSERT_TRUE(queue.Push(Ready(2)));
  std::atomic<bool> pushed{false};
  std::thread pusher([&] {
    EXPECT_TRUE(queue.Push(Ready(3)));
    pushed = true;
  });
  PendingAck ack;
  ASSERT_EQ(queue.Pop(absl::InfiniteFuture(), &ack), AckQueue::Next::kAck);
  EXPECT_EQ(ack.result->id(), 1u);
  EXPECT_FALSE(pushed) << "taken out is not yet answered";
  queue.Done();
  pusher.join();
  EXPECT_TRUE(pushed);
}

TEST(AckQueueTest, CloseLetsTheRestOut) {
  AckQueue queue(2);
  queue.Push(Ready(1));
  queue.Close();
  PendingAck ack;
  EXPECT_EQ(queue.Pop(absl::InfiniteFuture(), &ack), AckQueue::Next::kAck);
  EXPECT_EQ(queue.Pop(absl::InfiniteFuture(), &ack), AckQueue::Next::kEnd);
}

TEST(AckQueueTest, BreakDropsTheRestAndFreesThePusher) {
  AckQueue queue(1);
  queue.Push(Ready(1));
  std::thread pusher([&] { EXPECT_FALSE(queue.Push(Ready(2))); });
  queue.Break();
  pusher.join();
  PendingAck ack;
  EXPECT_EQ(queue.Pop(absl::InfiniteFuture(), &ack), AckQueue::Next::kEnd);
}

TEST(AckQueueTest, PopGivesUpAtItsDeadline) {
  AckQueue queue(1);
  PendingAck ack;
  EXPECT_EQ(queue.Pop(absl::Now(), &ack), AckQueue::Next::kTimeout);
}

TEST(AckQueueTest, IsNotIdleWhileMoreIsToCome) {
  AckQueue queue(4);
  EXPECT_TRUE(queue.idle());
  queue.Push(Ready(1), /*more=*/true);
  PendingAck ack;
  ASSERT_EQ(queue.Pop(absl::InfiniteFuture(), &ack), AckQueue::Next::kAck);
  queue.Done();
  EXPECT_FALSE(queue.idle());
  queue.Push(Ready(2));
  EXPECT_FALSE(queue.idle());
  ASSERT_EQ(queue.Pop(absl::InfiniteFuture(), &ack), AckQueue::Next::kAck);
  EXPECT_TRUE(queue.idle());
}

// The pusher announced more and then has to wait for the popper: that must be awake.
TEST(AckQueueTest, AWaitingPusherHoldsNothingBack) {
  AckQueue queue(2);
  std::thread popper([&] {
    PendingAck ack;
    while (queue.Pop(absl::InfiniteFuture(), &ack) == AckQueue::Next::kAck) queue.Done();
  });
  // Full again and again.
  for (uint64_t i = 1; i <= 100; ++i) EXPECT_TRUE(queue.Push(Ready(i), /*more=*/true));
  queue.Push(Ready(1), /*more=*/true);
  queue.Close();
  popper.join();
}

}  // namespace
}  // namespace stride::api
