#pragma once

#include "server/keeper/keeper.h"
#include "server/main/config.h"
#include "server/main/notifier.h"
#include "server/main/server.h"
#include "server/main/signals.h"

namespace stride {

// Lets the server run until a signal, or the end of --parent-pid, and then drain. Feeds the service
// manager's watchdog and the keeper until then, each time after a real call through our own socket,
// when the engine answers too. Returns the exit code; a second signal ends the process without
// returning.
int Supervise(const Config& config, const Notifier& notifier, Signals& signals,
              keeper::Keeper* keeper, std::unique_ptr<Server> server);

}  // namespace stride
