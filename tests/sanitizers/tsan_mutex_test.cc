// What absl's locks order is no race; built in the tsan preset only, where the sanitizer is the
// judge.
#include <absl/status/status.h>
#include <absl/synchronization/blocking_counter.h>
#include <absl/synchronization/mutex.h>
#include <absl/synchronization/notification.h>
#include <gtest/gtest.h>

#include <array>
#include <thread>
#include <vector>

namespace {

constexpr int kThreads = 4;
constexpr int kRounds = 1000;

class Threads {
 public:
  template <typename Body>
  explicit Threads(Body body) {
    for (int i = 0; i < kThreads; ++i) threads_.emplace_back(body, i);
  }
  ~Threads() {
    for (std::thread& thread : threads_) thread.join();
  }

 private:
  std::vector<std::thread> threads_;
};

bool IsFull(int* count) { return *count == kThreads * kRounds; }

TEST(TsanMutexTest, MutexAndItsWaitsOrderWhatTheyGuard) {
  absl::Mutex mutex;
  absl::CondVar changed;
  int count = 0;
  Threads threads([&](int) {
    for (int i = 0; i < kRounds; ++i) {
      absl::MutexLock lock(&mutex);
      ++count;
      changed.SignalAll();
    }
  });
  {
    absl::MutexLock lock(&mutex);
    while (count < kRounds) changed.Wait(&mutex);
  }
  absl::MutexLock lock(&mutex, absl::Condition(IsFull, &count));
  mutex.Await(absl::Condition(IsFull, &count));
  EXPECT_EQ(count, kThreads * kRounds);
}

TEST(TsanMutexTest, ReadersSeeWhatWritersWrote) {
  absl::Mutex mutex;
  int count = 0;
  Threads threads([&](int i) {
    for (int round = 0; round < kRounds; ++round) {
      if (i == 0) {
        absl::MutexLock lock(&mutex);
        ++count;
      } else {
        absl::ReaderMutexLock lock(&mutex);
        EXPECT_LE(count, kRounds);
      }
    }
  });
}

TEST(TsanMutexTest, NotificationOrders) {
  absl::Notification done;
  int value = 0;
  std::thread writer([&] {
    value = 1;
    done.Notify();
  });
  while (!done.HasBeenNotified()) std::this_thread::yield();
  EXPECT_EQ(value, 1);
  done.WaitForNotification();
  writer.join();
}

TEST(TsanMutexTest, BlockingCounterOrders) {
  absl::BlockingCounter left(kThreads);
  std::array<int, kThreads> values{};
  Threads threads([&](int i) {
    values[i] = 1;
    left.DecrementCount();
  });
  left.Wait();
  for (int value : values) EXPECT_EQ(value, 1);
}

// The copies' last owner deletes the text; which thread that is, is chance.
TEST(TsanMutexTest, StatusesMayBeReadAndLetGoByManyThreads) {
  for (int round = 0; round < kRounds / 10; ++round) {
    absl::Status status = absl::InternalError("what all of them read");
    Threads threads([copy = status](int) { EXPECT_EQ(copy.message().size(), 21u); });
    status = absl::OkStatus();
  }
}

}  // namespace
