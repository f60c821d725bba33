#include "server/api/ack_queue.h"

#include <atomic>
#include <thread>
#include <vector>

#include "absl/time/clock.h"
#include "gtest/gtest.h"
#include "server/base/environment.h"

namespace stride::api {
namespace {

using Acks = std::vector<PendingAck>;

bool Push(AckQueue& queue, std::vector<uint64_t> ids, bool more = false) {
  Acks acks(ids.size());
  for (size_t i = 0; i < ids.size(); ++i) acks[i].id = ids[i];
  return queue.Push(absl::MakeSpan(acks), more);
}

std::vector<uint64_t> Ids(const Acks& acks) {
  std::vector<uint64_t> ids;
  for (const PendingAck& ack : acks) ids.push_back(ack.id);
  return ids;
}

TEST(AckQueueTest, FullUntilOldestIsDone) {
  AckQueue queue(2);
  ASSERT_TRUE(Push(queue, {1, 2}));
  std::atomic<bool> pushed{false};
  std::thread pusher([&] {
    EXPECT_TRUE(Push(queue, {3}));
    pushed = true;
  });
  Acks acks;
  ASSERT_EQ(queue.Pop(SteadyTime::InfiniteFuture(), &acks), AckQueue::Next::kAcks);
  EXPECT_EQ(Ids(acks), std::vector<uint64_t>({1, 2})) << "all that were there, in order";
  EXPECT_FALSE(pushed) << "taken out is not yet answered";
  queue.Done(1);
  pusher.join();
  EXPECT_TRUE(pushed);
  Acks rest;
  ASSERT_EQ(queue.Pop(SteadyTime::InfiniteFuture(), &rest), AckQueue::Next::kAcks);
  EXPECT_EQ(Ids(rest), std::vector<uint64_t>({3}));
}

// A group larger than the capacity enters as others are done.
TEST(AckQueueTest, GroupMayExceedCapacity) {
  AckQueue queue(2);
  std::thread pusher([&] { EXPECT_TRUE(Push(queue, {1, 2, 3, 4, 5})); });
  std::vector<uint64_t> seen;
  while (seen.size() < 5) {
    Acks acks;
    ASSERT_EQ(queue.Pop(SteadyTime::InfiniteFuture(), &acks), AckQueue::Next::kAcks);
    EXPECT_LE(acks.size(), 2u);
    for (uint64_t id : Ids(acks)) seen.push_back(id);
    queue.Done(acks.size());
  }
  pusher.join();
  EXPECT_EQ(seen, std::vector<uint64_t>({1, 2, 3, 4, 5}));
}

TEST(AckQueueTest, CloseDeliversRemainingAcks) {
  AckQueue queue(2);
  Push(queue, {1});
  queue.Close();
  Acks acks;
  EXPECT_EQ(queue.Pop(SteadyTime::InfiniteFuture(), &acks), AckQueue::Next::kAcks);
  acks.clear();
  EXPECT_EQ(queue.Pop(SteadyTime::InfiniteFuture(), &acks), AckQueue::Next::kEnd);
}

TEST(AckQueueTest, BreakDropsRemainingAcksAndWakesPusher) {
  AckQueue queue(1);
  Push(queue, {1});
  std::thread pusher([&] { EXPECT_FALSE(Push(queue, {2})); });
  queue.Break();
  pusher.join();
  Acks acks;
  EXPECT_EQ(queue.Pop(SteadyTime::InfiniteFuture(), &acks), AckQueue::Next::kEnd);
}

TEST(AckQueueTest, PopReturnsAtDeadline) {
  AckQueue queue(1);
  Acks acks;
  EXPECT_EQ(queue.Pop(Now(), &acks), AckQueue::Next::kTimeout);
}

TEST(AckQueueTest, IsBusyWhileMoreIsAnnounced) {
  AckQueue queue(4);
  EXPECT_TRUE(queue.idle());
  Push(queue, {1}, /*more=*/true);
  Acks acks;
  ASSERT_EQ(queue.Pop(SteadyTime::InfiniteFuture(), &acks), AckQueue::Next::kAcks);
  queue.Done(1);
  EXPECT_FALSE(queue.idle());
  Push(queue, {2});
  EXPECT_FALSE(queue.idle());
  acks.clear();
  ASSERT_EQ(queue.Pop(SteadyTime::InfiniteFuture(), &acks), AckQueue::Next::kAcks);
  EXPECT_TRUE(queue.idle());
}

// The pusher announces more and then waits for the popper, which must be awake.
TEST(AckQueueTest, WaitingPusherWakesPopper) {
  AckQueue queue(2);
  std::thread popper([&] {
    Acks acks;
    while (queue.Pop(SteadyTime::InfiniteFuture(), &acks) == AckQueue::Next::kAcks) {
      queue.Done(acks.size());
      acks.clear();
    }
  });
  // Fills the queue again and again.
  for (uint64_t i = 1; i <= 100; ++i) EXPECT_TRUE(Push(queue, {i}, /*more=*/true));
  Push(queue, {1}, /*more=*/true);
  queue.Close();
  popper.join();
}

}  // namespace
}  // namespace stride::api
