#pragma once

#include "absl/time/time.h"
#include "server/base/unique_fd.h"

namespace stride::worker {

// Called by each worker process before it reads a byte from the daemon, with or without a sandbox.
// The process gains no privilege, leaves no core file (it would contain arrays), dies with the
// daemon's spawning thread, is killed long before the daemon when memory runs out, and ignores
// SIGPIPE and a terminal's SIGINT.
void HardenProcess();

// Compile mode: a failed allocation ends the process with wire::kOutOfMemoryExit.
void ExitWhenMemoryEnds();

// Compile mode, before each request: SIGXCPU ends the process once the request has used this much
// processor time.
void AllowProcessorTime(absl::Duration time);

// Starts a thread that exits the process as soon as the peer of `socket` is gone, regardless of the
// other threads.
void ExitWhenPeerGoes(int socket);

}  // namespace stride::worker
