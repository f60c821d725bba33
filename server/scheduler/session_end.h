#pragma once

#include "server/scheduler/core.h"
#include "server/scheduler/scheduler.h"
#include "server/session/catalogue.h"

namespace stride::scheduler {

// Takes all arrays out of a session that has been closed, some hundreds at a time: a session may
// have millions, and nobody else is to wait for them. What it still computes or receives is
// cancelled. Any thread; the lock must not be held.
void EmptySession(Core* core, Scheduler* scheduler, session::Session& session);

// The same, and then the session itself.
void EndSession(Core* core, Scheduler* scheduler, session::Session& session);

}  // namespace stride::scheduler
