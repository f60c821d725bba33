#pragma once

#include "absl/time/time.h"
#include "server/base/unique_fd.h"

namespace stride::worker {

// What every worker process does to itself before it reads a byte from the daemon, with a sandbox
// or without: it gains no privilege, leaves no core file (it would hold arrays), dies with the
// daemon's spawning thread, and long before the daemon when memory runs out, and ignores SIGPIPE
// and a terminal's SIGINT.
void HardenProcess();

// Compile mode: an allocation that fails ends the process with wire::kOutOfMemoryExit.
void ExitWhenMemoryEnds();

// Compile mode, before each request: SIGXCPU ends the process when one request has used this much
// processor time.
void AllowProcessorTime(absl::Duration time);

// Starts a thread that exits the process as soon as the peer of `socket` is gone, whatever the
// other threads are doing.
void ExitWhenPeerGoes(int socket);

}  // namespace stride::worker
