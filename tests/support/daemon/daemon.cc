#include "tests/support/daemon/daemon.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>

#include "gtest/gtest.h"

extern char** environ;

namespace stride::testing {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;

constexpr auto kReadyTime = std::chrono::seconds(30);
[[maybe_unused]] constexpr auto kLeakCheckTime = std::chrono::seconds(10);

std::string ReadFile(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

// The fourth field of stat; the second, the name, may hold anything but ends with the last ')'.
pid_t ParentOf(const fs::path& process) {
  const std::string stat = ReadFile(process / "stat");
  const size_t name_end = stat.rfind(')');
  if (name_end == std::string::npos) return -1;
  std::istringstream rest(stat.substr(name_end + 1));
  std::string state;
  pid_t parent = -1;
  rest >> state >> parent;
  return state == "Z" ? -1 : parent;
}

bool HasFlag(const std::vector<std::string>& flags, const std::string& prefix) {
  return std::any_of(flags.begin(), flags.end(),
                     [&](const std::string& flag) { return flag.rfind(prefix, 0) == 0; });
}

}  // namespace

Daemon::Daemon(std::vector<std::string> flags) {
  // Short, because a socket's path is.
  std::string pattern = "/tmp/stride-test.XXXXXX";
  if (mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("no temporary folder");
  folder_ = pattern;
  address_ = "unix:" + folder_ + "/s";
  std::vector<std::string> arguments = {STRIDED, "--listen=" + address_, "--no-cuda",
                                        "--log-format=text",
                                        "--parent-pid=" + std::to_string(getpid())};
  if (!HasFlag(flags, "--cpu-devices")) arguments.push_back("--cpu-devices=1x1");
  arguments.insert(arguments.end(), flags.begin(), flags.end());
  Spawn(std::move(arguments));
  if (!WaitForLog("ready pid=", kReadyTime)) {
    throw std::runtime_error("strided does not get ready:\n" + Log());
  }
}

Daemon::~Daemon() {
#ifdef __SANITIZE_ADDRESS__
  // Only a process that ends by itself looks for what it leaked.
  if (!ended_) {
    Signal(SIGTERM);
    Wait(kLeakCheckTime);
  }
#endif
  if (!ended_) {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  reader_.join();
  if (::testing::Test::HasFailure()) {
    std::fprintf(stderr, "--- log of strided ---\n%s--- end of log ---\n", log_.c_str());
  }
  std::error_code error;
  fs::remove_all(folder_, error);
}

void Daemon::Spawn(std::vector<std::string> arguments) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) throw std::runtime_error("no pipe");
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDERR_FILENO);
  const int failed = posix_spawn(&pid_, STRIDED, &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  if (failed != 0) {
    close(ends[0]);
    throw std::runtime_error("strided cannot be started: " STRIDED);
  }
  reader_ = std::thread([this, fd = ends[0]] { ReadLog(fd); });
}

void Daemon::ReadLog(int fd) {
  char buffer[4096];
  ssize_t size;
  while ((size = read(fd, buffer, sizeof(buffer))) > 0) {
    std::lock_guard lock(mutex_);
    log_.append(buffer, size);
    changed_.notify_all();
  }
  close(fd);
  std::lock_guard lock(mutex_);
  log_ended_ = true;
  changed_.notify_all();
}

bool Daemon::WaitForLog(const std::string& text, milliseconds time) {
  std::unique_lock lock(mutex_);
  auto found = [&] { return log_.find(text) != std::string::npos; };
  changed_.wait_for(lock, time, [&] { return log_ended_ || found(); });
  return found();
}

std::string Daemon::Log() const {
  std::lock_guard lock(mutex_);
  return log_;
}

Client Daemon::Connect() const {
  auto client = Client::Connect({.address = address_});
  if (!client) throw std::runtime_error(client.error().ToString());
  return *std::move(client);
}

std::vector<pid_t> Daemon::Children(const std::string& argument) const {
  std::vector<pid_t> out;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator("/proc", error)) {
    const std::string name = entry.path().filename();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    if (ParentOf(entry.path()) != pid_) continue;
    const std::string command = ReadFile(entry.path() / "cmdline");
    if (command.find(std::string(1, '\0') + argument) == std::string::npos) continue;
    out.push_back(std::stoi(name));
  }
  return out;
}

void Daemon::Signal(int signal) const { kill(pid_, signal); }

std::optional<int> Daemon::Wait(milliseconds time) {
  int status = 0;
  if (!Eventually([&] { return waitpid(pid_, &status, WNOHANG) == pid_; }, time)) return {};
  ended_ = true;
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

}  // namespace stride::testing
