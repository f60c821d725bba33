#pragma once

#include "server/base/json_text.h"  // IWYU pragma: export
#include "server/main/config.h"

namespace stride {

// Sends the process's log, and gRPC's complaints, to standard error: one JSON object a line (time,
// level, message), or plain text for a terminal. Call once, before threads.
void SetUpLogging(const Config& config);

}  // namespace stride
