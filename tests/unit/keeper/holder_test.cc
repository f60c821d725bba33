#include "server/keeper/holder.h"

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
#include "server/keeper/holder_keeper.h"
#include "tests/support/await.h"

namespace stride::keeper {
namespace {

using ::stride::testing::Eventually;

// State shared by the processes of a test.
struct Board {
  std::atomic<int> starts{0};
  std::atomic<pid_t> daemon{0};
  std::atomic<pid_t> orphan{0};
  std::atomic<int> note{0};
};

class HolderTest : public ::testing::Test {
 protected:
  HolderTest()
      : board_(new (mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0))
                   Board) {}
  ~HolderTest() override { munmap(board_, 4096); }

  // Runs a holder in a separate process. `daemon` receives its keeper and the number of its
  // predecessors.
  void Start(std::function<int(Keeper&, int)> daemon,
             absl::Duration patience = absl::InfiniteDuration()) {
    holder_ = fork();
    if (holder_ != 0) return;
    HolderOptions options;
    options.patience = patience;
    options.log = [](const std::string&) {};
    options.daemon = [&](UniqueFd socket) {
      board_->daemon = getpid();
      auto keeper = MakeHolderKeeper(std::move(socket));
      return daemon(*keeper, board_->starts++);
    };
    _exit(RunHolder(std::move(options)));
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

TEST_F(HolderTest, DescriptorsOutliveTheDaemon) {
  Start([](Keeper& keeper, int before) {
    if (before == 0) {
      if (!keeper.TakeAll().empty()) return 10;
      if (!keeper.Store("a", FileWith("first").get()).ok()) return 11;
      if (!keeper.Store("b", FileWith("second").get()).ok()) return 12;
      if (!keeper.Store("c", FileWith("third").get()).ok()) return 13;
      if (!keeper.Store("a", FileWith("changed").get()).ok()) return 14;
      if (keeper.Store("not a name", 0).ok()) return 15;
      keeper.Remove("c");
      keeper.Ready();
      Die();
    }
    auto kept = keeper.TakeAll();
    if (kept.size() != 2) return 20;
    if (kept[0].name != "a" || TextOf(kept[0].fd) != "changed") return 21;
    if (kept[1].name != "b" || TextOf(kept[1].fd) != "second") return 22;
    keeper.Remove("b");
    keeper.Remove("b");
    if (keeper.TakeAll().size() != 1) return 23;
    return 0;
  });
  EXPECT_EQ(Wait(), 0);
  EXPECT_EQ(board_->starts, 2);
}

TEST_F(HolderTest, ErrorBeforeFirstServiceEndsTheHolder) {
  Start([](Keeper&, int) { return 7; });
  EXPECT_EQ(Wait(), 7);
  EXPECT_EQ(board_->starts, 1);
}

TEST_F(HolderTest, ErrorAfterServiceRestartsTheDaemon) {
  Start([](Keeper& keeper, int before) {
    keeper.Ready();
    return before < 3 ? 7 : 0;
  });
  EXPECT_EQ(Wait(), 0);
  EXPECT_EQ(board_->starts, 4);
}

TEST_F(HolderTest, EarlyDeathDelaysTheRestart) {
  auto begin = std::chrono::steady_clock::now();
  Start([](Keeper&, int before) {
    if (before < 4) Die();
    return 0;
  });
  EXPECT_EQ(Wait(), 0);
  // 20 + 40 + 80 + 160
  EXPECT_GE(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(300));
}

TEST_F(HolderTest, SignalsAndExitCodeAreForwarded) {
  Start([](Keeper& keeper, int) {
    keeper.Ready();
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

TEST_F(HolderTest, DaemonKilledDuringStopIsNotRestarted) {
  Start([this](Keeper& keeper, int) {
    keeper.Ready();
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

TEST_F(HolderTest, SilentDaemonIsReplaced) {
  Start(
      [](Keeper& keeper, int before) {
        if (before == 2) return 0;
        keeper.Ready();
        keeper.Alive();
        if (before == 0) raise(SIGSTOP);
        for (;;) pause();
        return 1;
      },
      absl::Seconds(3));
  EXPECT_EQ(Wait(), 0);
  EXPECT_EQ(board_->starts, 3);
}

// Before it serves, a daemon may take its time; afterwards heartbeats are required.
TEST_F(HolderTest, DaemonWithHeartbeatsIsKept) {
  Start(
      [](Keeper& keeper, int) {
        std::this_thread::sleep_for(std::chrono::seconds(6));
        keeper.Ready();
        // More often than the holder's silence limit.
        for (int i = 0; i < 20; ++i) {
          keeper.Alive();
          std::this_thread::sleep_for(std::chrono::milliseconds(250));
        }
        return 0;
      },
      absl::Seconds(4));
  EXPECT_EQ(Wait(), 0);
  EXPECT_EQ(board_->starts, 1);
}

// The daemon may also hang during its shutdown.
TEST_F(HolderTest, DaemonThatHangsDuringStopIsKilled) {
  Start(
      [](Keeper& keeper, int) {
        keeper.Ready();
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
TEST_F(HolderTest, OrphansAreReapedBeforeTheNextStart) {
  Start([this](Keeper& keeper, int before) {
    keeper.Ready();
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

TEST_F(HolderTest, HolderDeathStopsTheDaemon) {
  Start([this](Keeper& keeper, int) {
    keeper.Ready();
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
}  // namespace stride::keeper
