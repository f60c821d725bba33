#include "server/broker/staging.h"
#include "server/base/environment.h"

#include <gtest/gtest.h>

#include <thread>

namespace stride::broker {
namespace {

TEST(StagingPoolTest, LendsEachSlotOnce) {
  std::vector<std::byte> memory(1000);
  StagingPool pool(memory.data(), memory.size(), 256);  // the last 232 bytes are no slot
  EXPECT_EQ(pool.num_free(), 3);
  std::vector<StagingPool::Slot> slots;
  while (StagingPool::Slot slot = pool.TryAcquire()) {
    EXPECT_EQ(slot.data, memory.data() + slot.offset);
    EXPECT_EQ(slot.size, 256u);
    slots.push_back(slot);
  }
  ASSERT_EQ(slots.size(), 3u);
  EXPECT_EQ(slots[0].offset, 0u);
  EXPECT_NE(slots[1].offset, slots[2].offset);
  pool.Release(slots[1]);
  EXPECT_EQ(pool.TryAcquire().offset, slots[1].offset);
}

TEST(StagingPoolTest, AcquireReturnsAtDeadline) {
  std::vector<std::byte> memory(64);
  StagingPool pool(memory.data(), 64, 64);
  StagingPool::Slot slot = pool.Acquire(SteadyTime::InfiniteFuture());
  EXPECT_TRUE(slot);
  EXPECT_FALSE(pool.Acquire(Now() + absl::Milliseconds(5)));
}

TEST(StagingPoolTest, WaitersWakeOnReleaseAndOnClose) {
  std::vector<std::byte> memory(64);
  StagingPool pool(memory.data(), 64, 64);
  StagingPool::Slot slot = pool.TryAcquire();
  std::thread waiter([&] { EXPECT_TRUE(pool.Acquire(SteadyTime::InfiniteFuture())); });
  pool.Release(slot);
  waiter.join();
  std::thread late([&] { EXPECT_FALSE(pool.Acquire(SteadyTime::InfiniteFuture())); });
  pool.Close();
  late.join();
  pool.Release(slot);
  EXPECT_FALSE(pool.TryAcquire());
}

}  // namespace
}  // namespace stride::broker
