// The whole process, with fakes: readiness, signals, sockets, the service manager's protocol.

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/api/listening_socket.h"
#include "server/base/environment.h"
#include "server/base/unique_fd.h"
#include "server/main/probe.h"
#include "tests/support/temporary_folder.h"

extern char** environ;

namespace stride {
namespace {

using ::testing::HasSubstr;

class Daemon {
 public:
  // `inherited` becomes descriptor 3.
  explicit Daemon(std::vector<std::string> arguments,
                  std::vector<std::string> extra_environment = {}, int inherited = -1) {
    int ends[2];
    EXPECT_EQ(pipe2(ends, O_CLOEXEC), 0);
    log_ = UniqueFd(ends[0]);
    UniqueFd write_end(ends[1]);
    arguments.push_back("--worker-dir=/");  // the devices are fakes
    // The shell knows the process id that the program will have.
    const char* program = inherited < 0 ? STRIDED : "/bin/sh";
    if (inherited >= 0) {
      std::string command = "LISTEN_PID=$$ LISTEN_FDS=1 exec " STRIDED;
      for (const std::string& argument : arguments) command += " " + argument;
      arguments = {"-c", command};
    }
    arguments.insert(arguments.begin(), program);
    std::vector<char*> argv;
    for (std::string& argument : arguments) argv.push_back(argument.data());
    argv.push_back(nullptr);
    std::vector<char*> environment;
    for (char** variable = environ; *variable != nullptr; ++variable)
      environment.push_back(*variable);
    for (std::string& variable : extra_environment) environment.push_back(variable.data());
    environment.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, write_end.get(), STDERR_FILENO);
    if (inherited >= 0) posix_spawn_file_actions_adddup2(&actions, inherited, 3);
    EXPECT_EQ(posix_spawn(&pid_, program, &actions, nullptr, argv.data(), environment.data()), 0);
    posix_spawn_file_actions_destroy(&actions);
  }
  ~Daemon() {
    if (pid_ > 0) kill(pid_, SIGKILL);
    if (pid_ > 0) waitpid(pid_, nullptr, 0);
  }

  // Reads the log until it contains `text`; returns the log so far.
  std::string LogUntil(const std::string& text) {
    SteadyTime deadline = Now() + absl::Seconds(100);
    char buffer[4096];
    while (seen_.find(text) == std::string::npos && Now() < deadline) {
      pollfd polled{log_.get(), POLLIN, 0};
      if (poll(&polled, 1, 1000) != 1) continue;
      ssize_t size = read(log_.get(), buffer, sizeof(buffer));
      if (size <= 0) break;
      seen_.append(buffer, size);
    }
    EXPECT_THAT(seen_, HasSubstr(text));
    return seen_;
  }
  void Signal(int signal) { kill(pid_, signal); }
  // Returns the exit code, or minus the signal that ended the process.
  int Wait() {
    int status = 0;
    waitpid(std::exchange(pid_, -1), &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }

 private:
  pid_t pid_ = -1;
  UniqueFd log_;
  std::string seen_;
};

class DaemonTest : public ::testing::Test {
 protected:
  DaemonTest() {
    std::string pattern =
        (std::filesystem::temp_directory_path() / "stride-daemon-XXXXXX").string();
    folder_ = mkdtemp(pattern.data());
    listen_ = "--listen=unix:" + folder_ + "/s";
  }
  ~DaemonTest() override { stride::test_support::RemoveFolder(folder_); }
  bool Answers() {
    return Probe(*api::ParseAddress("unix:" + folder_ + "/s")).Answers(absl::Seconds(10));
  }

  std::string folder_;
  std::string listen_;
};

TEST_F(DaemonTest, ServesAndDrainsOnSigterm) {
  Daemon daemon({listen_, "--listen=tcp:127.0.0.1:0", "--log-format=json",
                 "--state-dir=" + folder_ + "/state"});
  std::string log = daemon.LogUntil("ready pid=");
  log = daemon.LogUntil("\"}\n");
  EXPECT_THAT(log, HasSubstr("\"level\":\"info\",\"message\":\"a fake broker"));
  size_t port = log.find("listening=tcp:127.0.0.1:");
  ASSERT_NE(port, std::string::npos) << log;
  EXPECT_NE(log[port + 24], '0') << "the chosen port is told";
  EXPECT_TRUE(Answers());
  EXPECT_TRUE(std::filesystem::exists(folder_ + "/state/code-cache"));
  daemon.Signal(SIGHUP);
  daemon.LogUntil("SIGHUP");
  EXPECT_TRUE(Answers());
  daemon.Signal(SIGTERM);
  daemon.LogUntil("stopped");
  EXPECT_EQ(daemon.Wait(), 0);
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/s"));
}

TEST_F(DaemonTest, DrainEndsAtItsTimeout) {
  Daemon daemon({listen_, "--drain-timeout=100ms"}, {"STRIDE_FAKE_HOLD=1"});
  daemon.LogUntil("ready pid=");
  daemon.Signal(SIGTERM);
  daemon.LogUntil("the drain timeout passed");
  EXPECT_EQ(daemon.Wait(), 0);
}

// Their time limit counts from the end of the drain, not from the drain's own limit.
TEST_F(DaemonTest, SlowWorkerExitDoesNotDelayShutdown) {
  Daemon daemon({listen_, "--drain-timeout=1h"}, {"STRIDE_FAKE_SLOW_WORKERS=1"});
  daemon.LogUntil("ready pid=");
  daemon.Signal(SIGTERM);
  daemon.LogUntil("they are left to the kernel");
  EXPECT_EQ(daemon.Wait(), 0);
}

TEST_F(DaemonTest, SecondSignalEndsTheDaemonAtOnce) {
  Daemon daemon({listen_, "--drain-timeout=1h"}, {"STRIDE_FAKE_HOLD=1"});
  daemon.LogUntil("ready pid=");
  daemon.Signal(SIGTERM);
  daemon.LogUntil("draining");
  daemon.Signal(SIGINT);
  daemon.LogUntil("stopping at once");
  EXPECT_EQ(daemon.Wait(), 128 + SIGINT);
}

TEST_F(DaemonTest, TakesTheSocketOfAServiceManager) {
  auto socket = api::Listen(*api::ParseAddress("unix:" + folder_ + "/s"), api::Reach::kLocalOnly);
  ASSERT_TRUE(socket.ok());
  Daemon daemon({}, {}, socket->fd.get());
  std::string log = daemon.LogUntil("ready pid=");
  log = daemon.LogUntil("listening=unix:" + folder_ + "/s");
  EXPECT_EQ(log.find("listening=tcp"), std::string::npos) << "nothing else is opened";
  EXPECT_TRUE(Answers());
  daemon.Signal(SIGTERM);
  EXPECT_EQ(daemon.Wait(), 0);
  EXPECT_TRUE(std::filesystem::exists(folder_ + "/s")) << "the manager's file stays";
}

TEST_F(DaemonTest, EndsWithItsParent) {
  pid_t parent = fork();
  if (parent == 0) {
    pause();
    _exit(0);
  }
  Daemon daemon({listen_, "--parent-pid=" + std::to_string(parent)});
  daemon.LogUntil("ready pid=");
  kill(parent, SIGKILL);
  waitpid(parent, nullptr, 0);
  daemon.LogUntil("the parent process has ended");
  EXPECT_EQ(daemon.Wait(), 0);
}

TEST_F(DaemonTest, MistakesEndTheDaemonWithAMessage) {
  Daemon typo({"--lisen=x"});
  typo.LogUntil("did you mean listen?");
  EXPECT_EQ(typo.Wait(), 2);
  Daemon open({"--listen=tcp:0.0.0.0:0"});
  open.LogUntil("--insecure");
  EXPECT_EQ(open.Wait(), 1);
  Daemon first({listen_});
  first.LogUntil("ready pid=");
  Daemon second({listen_});
  second.LogUntil("another process listens");
  EXPECT_EQ(second.Wait(), 1);
}

TEST_F(DaemonTest, StateFolderOfAnotherUserPreventsStart) {
  namespace fs = std::filesystem;
  const std::string state = folder_ + "/state", elsewhere = folder_ + "/elsewhere";
  const auto expect_refused = [&](const std::string& words) {
    Daemon daemon({listen_, "--state-dir=" + state});
    daemon.LogUntil(words);
    EXPECT_EQ(daemon.Wait(), 1);
  };
  fs::create_directory(state);
  fs::create_directory(elsewhere);
  std::ofstream(elsewhere + "/spill-precious") << "x";
  std::ofstream(elsewhere + "/0000000000000001.content") << "x";
  chmod(state.c_str(), 0777);
  expect_refused("chmod go-w " + state);
  chmod(state.c_str(), 0700);
  fs::create_directory(state + "/durable");
  for (const char* name : {"code-cache", "spill", "durable/arrays"}) {
    fs::create_directory_symlink(elsewhere, state + "/" + name);
    expect_refused("symbolic link");
    fs::remove(state + "/" + name);
  }
  EXPECT_TRUE(fs::exists(elsewhere + "/spill-precious"));
  EXPECT_TRUE(fs::exists(elsewhere + "/0000000000000001.content"));
}

// Like a daemon that is stopped or deadlocked.
TEST_F(DaemonTest, HungDaemonIsReplacedByItsSupervisor) {
  Daemon holder({listen_, "--supervise", "--hang-timeout=5s"}, {"STRIDE_FAKE_STUCK=1"});
  holder.LogUntil("it is killed");
  EXPECT_THAT(holder.LogUntil("was killed by signal 9; starting it again"),
              HasSubstr("the daemon has not answered a call to itself for 5s"));
}

TEST_F(DaemonTest, NotifiesTheServiceManager) {
  std::string path = folder_ + "/notify";
  UniqueFd manager(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  std::memcpy(name.sun_path, path.data(), path.size());
  ASSERT_EQ(bind(manager.get(), reinterpret_cast<sockaddr*>(&name), sizeof(name)), 0);
  timeval patience{30, 0};
  setsockopt(manager.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
  auto next = [&] {
    char text[256];
    ssize_t size = recv(manager.get(), text, sizeof(text), 0);
    return std::string(text, std::max<ssize_t>(size, 0));
  };
  Daemon daemon({listen_}, {"NOTIFY_SOCKET=" + path, "WATCHDOG_USEC=400000"});
  EXPECT_THAT(next(), HasSubstr("READY=1"));
  EXPECT_EQ(next(), "WATCHDOG=1");
  EXPECT_EQ(next(), "WATCHDOG=1");
  daemon.Signal(SIGINT);
  std::string text = next();
  while (text == "WATCHDOG=1") text = next();
  EXPECT_THAT(text, HasSubstr("STOPPING=1"));
  EXPECT_EQ(daemon.Wait(), 0);
}

TEST_F(DaemonTest, HungEngineStopsWatchdogNotifications) {
  std::string path = folder_ + "/notify";
  UniqueFd manager(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  std::memcpy(name.sun_path, path.data(), path.size());
  ASSERT_EQ(bind(manager.get(), reinterpret_cast<sockaddr*>(&name), sizeof(name)), 0);
  Daemon daemon({listen_},
                {"NOTIFY_SOCKET=" + path, "WATCHDOG_USEC=400000", "STRIDE_FAKE_STUCK=1"});
  EXPECT_THAT(daemon.LogUntil("engine does not answer"), HasSubstr("engine does not answer"));
  char text[256];
  ssize_t size;
  while ((size = recv(manager.get(), text, sizeof(text), MSG_DONTWAIT)) > 0)
    EXPECT_EQ(std::string(text, size).find("WATCHDOG=1"), std::string::npos);
  daemon.Signal(SIGINT);
  EXPECT_EQ(daemon.Wait(), 0);
}

}  // namespace
}  // namespace stride
