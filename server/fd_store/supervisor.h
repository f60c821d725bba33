#pragma once

#include <functional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "server/base/passed_fds.h"
#include "server/base/unique_fd.h"

namespace stride::fd_store {

// Prefix of names of the sockets that a service manager passed and the supervisor passes to the
// daemon.
inline constexpr char kPassedPrefix[] = "passed-";

struct SupervisorOptions {
  // The daemon: gets its end of the socket to the supervisor (MakeSupervisedFdStore), returns its
  // exit code.
  std::function<int(UniqueFd socket)> daemon;
  std::function<void(const std::string&)> log;
  std::vector<NamedFd> passed;  // passed to the daemon as stored descriptors
  // A daemon that has reported that it serves, and then gives no sign of life (FdStore::Alive) for
  // this time, is killed. Infinite: never.
  absl::Duration patience = absl::Seconds(30);
};

// Forks `daemon` and holds its descriptors. Restarts the daemon when it dies: at once if it had
// served, otherwise after a growing pause. A daemon that exits with an error before any has served
// is not restarted, since its error would repeat. A hung daemon is killed first. Time in which the
// supervisor itself did not run, since the machine was starved or suspended, does not count as
// silence.
//
// Call it before any thread is started, and before a descriptor is opened that the daemon should
// not have. Returns in both processes: in the daemon's with the result of `daemon`, in the
// supervisor's with the exit code (128 + signal when the daemon was killed during its end).
// SIGTERM, SIGINT and SIGHUP are passed to the daemon. The supervisor reaps orphaned processes, so
// it may be PID 1; those of a dead daemon have ended before the next one starts. The kernel asks
// the daemon to end when the supervisor dies.
int RunSupervisor(SupervisorOptions options);

}  // namespace stride::fd_store
