#include "server/main/parent_watch.h"

#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "gtest/gtest.h"

namespace stride {
namespace {

TEST(ParentWatchTest, ReportsTheEndOfAProcess) {
  pid_t child = fork();
  if (child == 0) {
    pause();
    _exit(0);
  }
  auto watch = WatchProcess(child);
  ASSERT_TRUE(watch.ok()) << watch.status();
  pollfd polled{watch->get(), POLLIN, 0};
  EXPECT_EQ(poll(&polled, 1, 0), 0);
  kill(child, SIGKILL);
  EXPECT_EQ(poll(&polled, 1, 10000), 1);
  waitpid(child, nullptr, 0);
  EXPECT_EQ(WatchProcess(child).status().code(), absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace stride
