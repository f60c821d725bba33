#include "server/base/executor.h"

#include <gtest/gtest.h>

#include <atomic>

#include "absl/synchronization/barrier.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "tests/support/await.h"

namespace stride {
namespace {

TEST(ExecutorTest, ThreadsStartOnDemandAndEndWhenIdle) {
  Executor executor(4, absl::Milliseconds(10));
  for (int round = 0; round < 3; ++round) {
    absl::Notification go;
    std::atomic<int> running{0};
    for (int i = 0; i < 8; ++i) {
      executor.Run([&] {
        ++running;
        AWAIT(go.HasBeenNotified());
      });
    }
    AWAIT(running >= 4);
    EXPECT_EQ(executor.num_threads(), 4);
    go.Notify();
    AWAIT(executor.num_threads() <= 0);
    EXPECT_EQ(running, 8);
  }
}

TEST(ExecutorTest, StopRunsQueuedTasksAndTheirAdditions) {
  Executor executor(1);
  std::atomic<int> ran{0};
  for (int i = 0; i < 3; ++i) {
    executor.Run([&] {
      absl::SleepFor(absl::Milliseconds(1));
      if (++ran == 1) executor.Run([&] { ++ran; });
    });
  }
  executor.Stop();
  EXPECT_EQ(ran, 4);
  executor.Run([&] { ++ran; });
  EXPECT_EQ(ran, 4) << "later work is dropped";
}

}  // namespace
}  // namespace stride
