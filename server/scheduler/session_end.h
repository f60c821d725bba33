#pragma once

#include "server/scheduler/core.h"
#include "server/scheduler/scheduler.h"
#include "server/session/catalogue.h"

namespace stride::scheduler {

// Ends a session that has been closed: takes all arrays out of it, some hundreds at a time (it may
// have millions, and nobody else is to wait for them), and then itself. What it still computes or
// receives is cancelled. Any thread; the lock must not be held.
void EndSession(Core* core, Scheduler* scheduler, session::Session& session);

}  // namespace stride::scheduler
