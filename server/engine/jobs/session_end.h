#pragma once

#include <string>

#include "absl/status/status.h"
#include "server/base/ids.h"
#include "server/engine/core/core.h"
#include "server/engine/scheduling/scheduler.h"
#include "server/session/catalogue.h"

namespace stride::engine {

// Ends a closed session: releases its arrays and then removes it. A session may have millions of
// arrays, so each transaction releases some hundreds. Its computations and uploads in flight are
// cancelled. Any thread; the caller has no transaction.
void EndSession(Core* core, Scheduler* scheduler, session::Session& session);

// Closes the tenant's session of that name and ends it. NOT_FOUND if it does not exist;
// INVALID_ARGUMENT, with the field `name`, if the name is malformed.
absl::Status EndSession(Core* core, Scheduler* scheduler, const TenantId& tenant,
                        const std::string& name);

}  // namespace stride::engine
