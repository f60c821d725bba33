#pragma once

#include <functional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "server/base/passed_fds.h"
#include "server/base/unique_fd.h"

namespace stride::keeper {

// Names under which sockets that a service manager listens on are handed to the daemon.
inline constexpr char kPassedPrefix[] = "passed-";

struct HolderOptions {
  // The daemon: gets its end of the socket to the holder (MakeHolderKeeper), returns its exit code.
  std::function<int(UniqueFd socket)> daemon;
  std::function<void(const std::string&)> log;
  std::vector<NamedFd> passed;  // given to the daemon as kept ones
  // A daemon that said that it serves and then gives no sign of life (Keeper::Alive) for so long is
  // killed. Infinite: never.
  absl::Duration patience = absl::Seconds(30);
};

// Forks `daemon` and keeps its descriptors. Starts the daemon again when it dies: at once if it had
// served, otherwise after a growing pause. A daemon that exits with an error before any has served
// is not started again, since its error would repeat. A daemon that hangs is killed first. Time in
// which the holder itself did not run, since the machine was starved or asleep, does not count as
// silence.
//
// Call it before any thread is started and any descriptor is open that the daemon should not have.
// Returns in both processes: in the daemon's with what `daemon` returned, in the holder's with the
// exit code (128 + signal when the daemon was killed while it was to end). SIGTERM, SIGINT and
// SIGHUP go to the daemon. Processes that lose their parent are reaped, so it may be PID 1; those
// of a daemon that died have ended before the next one starts. The daemon is asked to end when the
// holder dies.
int RunHolder(HolderOptions options);

}  // namespace stride::keeper
