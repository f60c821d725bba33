#pragma once

#include <string>
#include <string_view>

#include "server/base/json_text.h"  // IWYU pragma: export
#include "server/main/config.h"

namespace stride {

// Sends the process's log, and complaints of gRPC and protobuf, to standard error: one JSON object
// a line (time, level, message), or plain text for a terminal. Call once, before any thread starts.
void SetUpLogging(const Config& config);

// Converts a library's message, which may quote a client's bytes, to one line of printable ASCII of
// bounded length.
std::string PrintableComplaint(std::string_view text);

}  // namespace stride
