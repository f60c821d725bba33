#pragma once

#include <string>
#include <string_view>

#include "server/base/json_text.h"  // IWYU pragma: export
#include "server/main/config.h"

namespace stride {

// Sends the process's log, and what gRPC and protobuf complain of, to standard error: one JSON
// object a line (time, level, message), or plain text for a terminal. Call once, before threads.
void SetUpLogging(const Config& config);

// What a library says, which may quote a client's bytes: one line of printable ASCII, cut where
// long.
std::string PrintableComplaint(std::string_view text);

}  // namespace stride
