// Where a daemon is, as a person writes it.
#pragma once

#include <string>

#include "stride/result.h"

namespace stride::internal {

// The gRPC target of `unix:PATH`, `HOST:PORT`, `[IPV6]:PORT` or either of these behind `tcp:`, as
// strided's --listen spells it. INVALID_ARGUMENT, with what is wrong, for anything else.
Result<std::string> TargetOf(const std::string& address);

}  // namespace stride::internal
