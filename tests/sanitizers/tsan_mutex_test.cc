// Accesses ordered by absl's locks are no race. Built only in the tsan preset, where the sanitizer
// checks this.
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

TEST(TsanMutexTest, MutexAndWaitsOrderGuardedData) {
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

TEST(TsanMutexTest, ReadersSeeWrites) {
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

TEST(TsanMutexTest, NotificationOrdersAccesses) {
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

TEST(TsanMutexTest, BlockingCounterOrdersAccesses) {
  absl::BlockingCounter left(kThreads);
  std::array<int, kThreads> values{};
  Threads threads([&](int i) {
    values[i] = 1;
    left.DecrementCount();
  });
  left.Wait();
  for (int value : values) EXPECT_EQ(value, 1);
}

// The last owner of the copies deletes the text; which thread that is, is arbitrary.
TEST(TsanMutexTest, StatusesMayBeReadAndReleasedConcurrently) {
  for (int round = 0; round < kRounds / 10; ++round) {
    absl::Status status = absl::InternalError("what all of them read");
    Threads threads([copy = status](int) { EXPECT_EQ(copy.message().size(), 21u); });
    status = absl::OkStatus();
  }
}

}  // namespace
