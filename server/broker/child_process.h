#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/base/unique_fd.h"

namespace stride::broker {

// How a process ended.
struct ChildExit {
  bool by_signal = false;
  int code = 0;  // exit code, or the signal's number
};

struct SpawnRequest {
  std::string executable;
  std::vector<std::string> arguments;    // after the program's name
  std::vector<std::string> environment;  // NAME=value
  int socket = -1;                       // becomes kChildSocket in the child; -1: none
  int standard_output = -1;              // -1: /dev/null
  int standard_error = kOwnStandardError;

  static constexpr int kOwnStandardError = -2;  // the daemon's own
};

// The child's descriptor of its socket.
inline constexpr int kChildSocket = 3;

// A child process: in its own process group, with only the request's descriptors and perhaps
// standard error, with default signals and standard input from /dev/null. Destruction kills it,
// with its group, and reaps it. Movable. Kill may be called from any thread while the object lives;
// other methods by its owner.
class ChildProcess {
 public:
  // Safe in a process with threads: allocates nothing between fork and exec (posix_spawn). The
  // child may ask the kernel to be killed when the calling *thread* ends, so call it on a
  // long-lived thread: see Spawner.
  static absl::StatusOr<ChildProcess> Start(const SpawnRequest& request);

  ChildProcess(ChildProcess&& other) noexcept;
  ChildProcess& operator=(ChildProcess&& other) noexcept;
  ~ChildProcess();

  pid_t pid() const { return pid_; }
  // Readable once the process has ended.
  int descriptor() const { return pidfd_.get(); }
  void Kill() const;
  // Waits for the process's end; true when it has ended within `timeout`.
  bool WaitEnded(absl::Duration timeout) const;
  // Blocks until the process has ended; reaps it. Call once.
  ChildExit Reap();

 private:
  ChildProcess(pid_t pid, UniqueFd pidfd) : pid_(pid), pidfd_(std::move(pidfd)) {}

  pid_t pid_ = -1;
  UniqueFd pidfd_;
};

}  // namespace stride::broker
