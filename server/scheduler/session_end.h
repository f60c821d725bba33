#pragma once

#include <string>

#include "absl/status/status.h"
#include "server/base/ids.h"
#include "server/scheduler/core.h"
#include "server/scheduler/scheduler.h"
#include "server/session/catalogue.h"

namespace stride::scheduler {

// Ends a session that has been closed: takes all arrays out of it, some hundreds at a time (it may
// have millions, and nobody else is to wait for them), and then itself. What it still computes or
// receives is cancelled. Any thread; the caller has no transaction.
void EndSession(Core* core, Scheduler* scheduler, session::Session& session);

// Closes the tenant's session of that name and ends it. NOT_FOUND when there is none, and
// INVALID_ARGUMENT (of the field `name`) when it is no session's name.
absl::Status EndSession(Core* core, Scheduler* scheduler, const TenantId& tenant,
                        const std::string& name);

}  // namespace stride::scheduler
