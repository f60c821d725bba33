#include "server/base/fair_mutex.h"

#include <atomic>
#include <thread>
#include <vector>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "tests/support/await.h"

namespace stride {
namespace {

TEST(FairMutexTest, OneThreadAtATime) {
  FairMutex mutex;
  int64_t count = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int k = 0; k < 50'000; ++k) {
        mutex.Lock();
        ++count;
        mutex.Unlock();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(count, 200'000);
  EXPECT_EQ(mutex.num_waiting(), 0);
}

TEST(FairMutexTest, TryLockDoesNotWait) {
  FairMutex mutex;
  ASSERT_TRUE(mutex.TryLock());
  std::thread other([&] { EXPECT_FALSE(mutex.TryLock()); });
  other.join();
  mutex.Unlock();
  ASSERT_TRUE(mutex.TryLock());
  mutex.Unlock();
}

// A thread that locks again at once after it unlocked, before a sleeping waiter can wake up.
TEST(FairMutexTest, LongWaiterAcquiresFirst) {
  FairMutex mutex;
  std::atomic<int> had{0};
  std::atomic<bool> stop{false};
  mutex.Lock();
  std::thread patient([&] {
    while (!stop) {
      mutex.Lock();
      ++had;
      mutex.Unlock();
    }
  });
  int overtaken = 0;
  constexpr int kRounds = 50;
  for (int round = 0; round < kRounds; ++round) {
    AWAIT(mutex.num_waiting() != 0);
    absl::SleepFor(absl::Milliseconds(2));
    const int before = had;
    mutex.Unlock();
    mutex.Lock();
    if (had == before) ++overtaken;
  }
  stop = true;
  mutex.Unlock();
  patient.join();
  EXPECT_LE(overtaken, kRounds / 5) << "more than a busy machine explains";
}

}  // namespace
}  // namespace stride
