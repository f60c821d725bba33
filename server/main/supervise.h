#pragma once

#include "server/fd_store/fd_store.h"
#include "server/main/config.h"
#include "server/main/notifier.h"
#include "server/main/server.h"
#include "server/main/signals.h"

namespace stride {

// Runs the server until a signal or the end of --parent-pid, then drains it. Notifies the service
// manager's watchdog and the FdStore until then, each time after a call through the daemon's own
// socket and an answer of the engine. Returns the exit code; a second signal ends the process at
// once.
int Supervise(const Config& config, const Notifier& notifier, Signals& signals,
              fd_store::FdStore* fd_store, std::unique_ptr<Server> server);

}  // namespace stride
