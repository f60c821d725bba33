#include "server/broker/child_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "server/base/system_error.h"

extern "C" {  // missing in this header in glibc 2.36
#include <sys/pidfd.h>
}

#include "server/base/environment.h"

namespace stride::broker {
namespace {

// Only newer headers define this enumerator in glibc's <sys/wait.h>.
constexpr idtype_t kPidfd = static_cast<idtype_t>(3);  // P_PIDFD

class SpawnSettings {
 public:
  SpawnSettings() {
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attributes);
  }
  ~SpawnSettings() {
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
  }
  void SetDescriptors(const SpawnRequest& request) {
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    if (request.standard_output >= 0) {
      posix_spawn_file_actions_adddup2(&actions, request.standard_output, STDOUT_FILENO);
    } else {
      posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    }
    if (request.standard_error >= 0) {
      posix_spawn_file_actions_adddup2(&actions, request.standard_error, STDERR_FILENO);
    } else if (request.standard_error != SpawnRequest::kOwnStandardError) {
      posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    }
    if (request.socket >= 0) {
      posix_spawn_file_actions_adddup2(&actions, request.socket, kChildSocket);
    }
    posix_spawn_file_actions_addclosefrom_np(&actions, request.socket >= 0 ? kChildSocket + 1 : 3);
  }
  void SetAttributes() {
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &all);
    posix_spawnattr_setpgroup(&attributes, 0);
    posix_spawnattr_setflags(
        &attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
  }
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
};

std::vector<char*> Pointers(std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  for (std::string& s : strings) pointers.push_back(s.data());
  pointers.push_back(nullptr);
  return pointers;
}

}  // namespace

absl::StatusOr<ChildProcess> ChildProcess::Start(const SpawnRequest& request) {
  SpawnSettings settings;
  settings.SetDescriptors(request);
  settings.SetAttributes();
  std::vector<std::string> arguments = request.arguments;
  arguments.insert(arguments.begin(), request.executable);
  std::vector<std::string> environment = request.environment;
  pid_t pid = -1;
  int error = posix_spawn(&pid, request.executable.c_str(), &settings.actions, &settings.attributes,
                          Pointers(arguments).data(), Pointers(environment).data());
  if (error != 0) return SystemError(error, "starting a process");
  UniqueFd pidfd(pidfd_open(pid, 0));
  if (!pidfd.valid()) {
    error = errno;
    kill(pid, SIGKILL);
    waitpid(pid, nullptr, 0);
    return SystemError(error, "watching a process");
  }
  return ChildProcess(pid, std::move(pidfd));
}

ChildProcess::ChildProcess(ChildProcess&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)), pidfd_(std::move(other.pidfd_)) {}

ChildProcess& ChildProcess::operator=(ChildProcess&& other) noexcept {
  std::swap(pid_, other.pid_);
  std::swap(pidfd_, other.pidfd_);
  return *this;
}

ChildProcess::~ChildProcess() {
  if (pid_ < 0) return;
  Kill();
  Reap();
}

void ChildProcess::Kill() const { pidfd_send_signal(pidfd_.get(), SIGKILL, nullptr, 0); }

bool ChildProcess::WaitEnded(absl::Duration timeout) const {
  SteadyTime deadline = Now() + timeout;
  for (;;) {
    pollfd entry{pidfd_.get(), POLLIN, 0};
    int64_t left = std::max<int64_t>(0, absl::ToInt64Milliseconds(deadline - Now()) + 1);
    int ready = poll(&entry, 1, static_cast<int>(left));
    if (ready > 0) return true;
    if (ready == 0) return false;
  }
}

ChildExit ChildProcess::Reap() {
  siginfo_t info{};
  while (waitid(kPidfd, pidfd_.get(), &info, WEXITED | WNOWAIT) != 0 && errno == EINTR) {
  }
  // While the leader is not reaped, its group's number cannot be reused.
  kill(-pid_, SIGKILL);
  while (waitid(kPidfd, pidfd_.get(), &info, WEXITED) != 0 && errno == EINTR) {
  }
  pid_ = -1;
  return {info.si_code != CLD_EXITED, info.si_status};
}

}  // namespace stride::broker
