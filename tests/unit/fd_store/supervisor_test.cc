#include "server/fd_store/supervisor.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <thread>

#include "gtest/gtest.h"
#include "server/fd_store/supervised_fd_store.h"
#include "tests/support/await.h"

namespace stride::fd_store {
namespace {

using ::stride::testing::Eventually;

// State shared by the processes of a test.
struct Board {
  std::atomic<int> starts{0};
  std::atomic<pid_t> daemon{0};
  std::atomic<pid_t> orphan{0};
  std::atomic<int> note{0};
};

class SupervisorTest : public ::testing::Test {
 protected:
  SupervisorTest()
      : board_(new (mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0))
                   Board) {}
  ~SupervisorTest() override { munmap(board_, 4096); }

  // Runs a holder in a separate process. `daemon` receives its FdStore and the number of its
  // predecessors.
  void Start(std::function<int(FdStore&, int)> daemon,
             absl::Duration patience = absl::InfiniteDuration()) {
    holder_ = fork();
    if (holder_ != 0) return;
    SupervisorOptions options;
    options.patience = patience;
    options.log = [](const std::string&) {};
    options.daemon = [&](UniqueFd socket) {
      board_->daemon = getpid();
      auto fd_store = MakeSupervisedFdStore(std::move(socket));
      return daemon(*fd_store, board_->starts++);
    };
    _exit(RunSupervisor(std::move(options)));
  }
  int Wait() {
    int status = 0;
    waitpid(holder_, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }

  Board* const board_;
  pid_t holder_ = -1;
};

UniqueFd FileWith(const char* text) {
  UniqueFd fd(memfd_create("test", 0));
  EXPECT_EQ(write(fd.get(), text, strlen(text)), static_cast<ssize_t>(strlen(text)));
  return fd;
}

std::string TextOf(const UniqueFd& fd) {
  char text[64] = "";
  ssize_t size = pread(fd.get(), text, sizeof(text), 0);
  return std::string(text, size > 0 ? size : 0);
}

[[noreturn]] void Die() {
  kill(getpid(), SIGKILL);
  for (;;) pause();
}

TEST_F(SupervisorTest, DescriptorsOutliveTheDaemon) {
  Start([](FdStore& fd_store, int before) {
    if (before == 0) {
      if (!fd_store.TakeAll().empty()) return 10;
      if (!fd_store.Store("a", FileWith("first").get()).ok()) return 11;
      if (!fd_store.Store("b", FileWith("second").get()).ok()) return 12;
      if (!fd_store.Store("c", FileWith("third").get()).ok()) return 13;
      if (!fd_store.Store("a", FileWith("changed").get()).ok()) return 14;
      if (fd_store.Store("not a name", 0).ok()) return 15;
      fd_store.Remove("c");
      fd_store.Ready();
      Die();
    }
    auto kept = fd_store.TakeAll();
    if (kept.size() != 2) return 20;
    if (kept[0].name != "a" || TextOf(kept[0].fd) != "changed") return 21;
    if (kept[1].name != "b" || TextOf(kept[1].fd) != "second") return 22;
    fd_store.Remove("b");
    fd_store.Remove("b");
    if (fd_store.TakeAll().size() != 1) return 23;
    return 0;
  });
  EXPECT_EQ(Wait(), 0);
  EXPECT_EQ(board_->starts, 2);
}

TEST_F(SupervisorTest, ErrorBeforeFirstServiceEndsTheSupervisor) {
  Start([](FdStore&, int) { return 7; });
  EXPECT_EQ(Wait(), 7);
  EXPECT_EQ(board_->starts, 1);
}

TEST_F(SupervisorTest, ErrorAfterServiceRestartsTheDaemon) {
  Start([](FdStore& fd_store, int before) {
    fd_store.Ready();
    return before < 3 ? 7 : 0;
  });
  EXPECT_EQ(Wait(), 0);
  EXPECT_EQ(board_->starts, 4);
}

TEST_F(SupervisorTest, EarlyDeathDelaysTheRestart) {
  auto begin = std::chrono::steady_clock::now();
  Start([](FdStore&, int before) {
    if (before < 4) Die();
    return 0;
  });
  EXPECT_EQ(Wait(), 0);
  // 20 + 40 + 80 + 160
  EXPECT_GE(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(300));
}

TEST_F(SupervisorTest, SignalsAndExitCodeAreForwarded) {
  Start([](FdStore& fd_store, int) {
    fd_store.Ready();
    sigset_t set;
    sigemptyset(&set);
    for (int signal : {SIGTERM, SIGINT, SIGHUP}) sigaddset(&set, signal);
    int first = 0, second = 0;
    sigwait(&set, &first);
    kill(getppid(), SIGTERM);
    sigwait(&set, &second);
    return first == SIGHUP && second == SIGTERM ? 42 : 1;
  });
  ASSERT_TRUE(Eventually([&] { return board_->starts == 1; }));
  kill(holder_, SIGHUP);
  EXPECT_EQ(Wait(), 42);
  EXPECT_EQ(board_->starts, 1);
}

TEST_F(SupervisorTest, DaemonKilledDuringStopIsNotRestarted) {
  Start([this](FdStore& fd_store, int) {
    fd_store.Ready();
    for (;;) pause();
    return 0;
  });
  ASSERT_TRUE(Eventually([&] { return board_->daemon != 0; }));
  kill(holder_, SIGTERM);
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  kill(board_->daemon, SIGKILL);
  EXPECT_EQ(Wait(), 128 + SIGKILL);
  EXPECT_EQ(board_->starts, 1);
}

TEST_F(SupervisorTest, SilentDaemonIsReplaced) {
  Start(
      [](FdStore& fd_store, int before) {
        if (before == 2) return 0;
        fd_store.Ready();
        fd_store.Alive();
        if (before == 0) raise(SIGSTOP);
        for (;;) pause();
        return 1;
      },
      absl::Seconds(3));
  EXPECT_EQ(Wait(), 0);
  EXPECT_EQ(board_->starts, 3);
}

// Before it serves, a daemon may take its time; afterwards heartbeats are required.
TEST_F(SupervisorTest, DaemonWithHeartbeatsIsKept) {
  Start(
      [](FdStore& fd_store, int) {
        std::this_thread::sleep_for(std::chrono::seconds(6));
        fd_store.Ready();
        // More often than the holder's silence limit.
        for (int i = 0; i < 20; ++i) {
          fd_store.Alive();
          std::this_thread::sleep_for(std::chrono::milliseconds(250));
        }
        return 0;
      },
      absl::Seconds(4));
  EXPECT_EQ(Wait(), 0);
  EXPECT_EQ(board_->starts, 1);
}

// The daemon may also hang during its shutdown.
TEST_F(SupervisorTest, DaemonThatHangsDuringStopIsKilled) {
  Start(
      [](FdStore& fd_store, int) {
        fd_store.Ready();
        for (;;) pause();
        return 0;
      },
      absl::Seconds(3));
  ASSERT_TRUE(Eventually([&] { return board_->daemon != 0; }));
  kill(holder_, SIGTERM);
  EXPECT_EQ(Wait(), 128 + SIGKILL);
  EXPECT_EQ(board_->starts, 1);
}

// The next daemon starts after the children of the previous one have ended.
TEST_F(SupervisorTest, OrphansAreReapedBeforeTheNextStart) {
  Start([this](FdStore& fd_store, int before) {
    fd_store.Ready();
    if (before == 0) {
      pid_t orphan = fork();
      if (orphan == 0) {
        std::this_thread::sleep_for(std::chrono::milliseconds(200));
        board_->note = 1;
        _exit(0);
      }
      board_->orphan = orphan;
      Die();
    }
    bool gone = kill(board_->orphan, 0) != 0 && errno == ESRCH;
    return board_->note == 1 && gone ? 0 : 9;
  });
  EXPECT_EQ(Wait(), 0);
}

TEST_F(SupervisorTest, SupervisorDeathStopsTheDaemon) {
  Start([this](FdStore& fd_store, int) {
    fd_store.Ready();
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    int signal = 0;
    sigwait(&set, &signal);
    board_->note = signal;
    _exit(0);
    return 0;
  });
  ASSERT_TRUE(Eventually([&] { return board_->starts == 1; }));
  kill(holder_, SIGKILL);
  EXPECT_EQ(Wait(), -SIGKILL);
  EXPECT_TRUE(Eventually([&] { return board_->note == SIGTERM; }));
}

}  // namespace
}  // namespace stride::fd_store
