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
#include "tests/support/temporary_folder.h"

extern char** environ;

namespace stride::testing {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;

constexpr char kReadyText[] = "ready pid=";
constexpr auto kReadyTime = std::chrono::seconds(30);
[[maybe_unused]] constexpr auto kLeakCheckTime = std::chrono::seconds(10);

std::string ReadFile(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

// The fourth field of stat; the second, the name, may contain anything but ends with the last ')'.
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

std::string OwnFolder() { return fs::read_symlink("/proc/self/exe").parent_path(); }

// The first GPUs visible to this process, as CUDA names them.
std::string FirstGpus(int count) {
  const char* visible = std::getenv("CUDA_VISIBLE_DEVICES");
  std::string all = visible != nullptr ? visible : "0";
  for (int i = 1; visible == nullptr && i < count; ++i) all += "," + std::to_string(i);
  std::istringstream names(all);
  std::string first;
  for (std::string name; count > 0 && std::getline(names, name, ','); --count)
    first += (first.empty() ? "" : ",") + name;
  return first;
}

std::vector<std::string> DeviceFlags(const Devices& devices) {
  if (!OnCpu()) return {};
  return {"--no-cuda", "--cpu-devices=" + std::to_string(devices.count) + "x" +
                           std::to_string(devices.cpu_threads)};
}

// This process's environment, with the GPUs visible to the daemon's workers.
std::vector<std::string> EnvironmentWith(int num_gpus) {
  constexpr char kGpus[] = "CUDA_VISIBLE_DEVICES=";
  std::vector<std::string> out;
  for (char** variable = environ; *variable != nullptr; ++variable)
    if (std::string(*variable).rfind(kGpus, 0) != 0) out.push_back(*variable);
  out.push_back(kGpus + FirstGpus(num_gpus));
  return out;
}

std::vector<char*> Pointers(std::vector<std::string>& strings) {
  std::vector<char*> out;
  for (std::string& text : strings) out.push_back(text.data());
  out.push_back(nullptr);
  return out;
}

}  // namespace

Daemon::Daemon(std::vector<std::string> flags, Devices devices,
               std::vector<std::string> environment) {
  // Short, because a socket's path is limited.
  std::string pattern = "/tmp/stride-test.XXXXXX";
  if (mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("no temporary folder");
  folder_ = pattern;
  address_ = "unix:" + folder_ + "/s";
  std::vector<std::string> arguments = {OwnFolder() + "/strided", "--listen=" + address_,
                                        "--log-format=text",
                                        "--parent-pid=" + std::to_string(getpid())};
  if (const char* workers = std::getenv("STRIDE_TEST_WORKER_DIR"))
    arguments.push_back(std::string("--worker-dir=") + workers);
  for (const auto& more : {DeviceFlags(devices), flags})
    arguments.insert(arguments.end(), more.begin(), more.end());
  for (std::string& variable : EnvironmentWith(devices.count))
    environment.push_back(std::move(variable));
  Spawn(std::move(arguments), std::move(environment));
  if (!WaitForLog(kReadyText, kReadyTime)) {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    reader_.join();
    throw std::runtime_error("strided does not get ready:\n" + Log());
  }
}

Daemon::~Daemon() {
#ifdef __SANITIZE_ADDRESS__
  // Only a process that exits by itself checks for leaks.
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
  stride::test_support::RemoveFolder(folder_);
}

void Daemon::Spawn(std::vector<std::string> arguments, std::vector<std::string> environment) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) throw std::runtime_error("no pipe");
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDERR_FILENO);
  const int failed = posix_spawn(&pid_, arguments[0].c_str(), &actions, nullptr,
                                 Pointers(arguments).data(), Pointers(environment).data());
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  if (failed != 0) {
    close(ends[0]);
    throw std::runtime_error("cannot be started: " + arguments[0]);
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
  const char* local_calls = std::getenv("STRIDE_TEST_LOCAL_CALLS");
  auto client =
      Client::Connect({.address = address_,
                       .local_calls = local_calls == nullptr || std::string("no") != local_calls});
  if (!client) throw std::runtime_error(client.error().ToString());
  return *std::move(client);
}

std::vector<pid_t> Daemon::Children(const std::string& argument) const {
  const pid_t serving = ServingPid();
  std::vector<pid_t> out;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator("/proc", error)) {
    const std::string name = entry.path().filename();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    if (ParentOf(entry.path()) != serving) continue;
    const std::string command = ReadFile(entry.path() / "cmdline");
    if (command.find(std::string(1, '\0') + argument) == std::string::npos) continue;
    out.push_back(std::stoi(name));
  }
  return out;
}

pid_t Daemon::ServingPid() const {
  std::lock_guard lock(mutex_);
  const size_t at = log_.rfind(kReadyText);
  return at == std::string::npos ? pid_ : std::stoi(log_.substr(at + sizeof(kReadyText) - 1));
}

int Daemon::TimesReady() const {
  std::lock_guard lock(mutex_);
  int times = 0;
  for (size_t at = log_.find(kReadyText); at != std::string::npos;
       at = log_.find(kReadyText, at + 1))
    ++times;
  return times;
}

bool Daemon::WaitReady(int times, milliseconds time) {
  return Eventually([&] { return TimesReady() >= times; }, time);
}

void Daemon::Signal(int signal) const { kill(pid_, signal); }

std::optional<int> Daemon::Wait(milliseconds time) {
  int status = 0;
  if (!Eventually([&] { return waitpid(pid_, &status, WNOHANG) == pid_; }, time)) return {};
  ended_ = true;
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

}  // namespace stride::testing
