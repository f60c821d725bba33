// Addresses of daemons in the form that users write.
#pragma once

#include <string>

#include "stride/result.h"

namespace stride::internal {

// The gRPC target of `unix:PATH`, `HOST:PORT`, `[IPV6]:PORT`, or one of the latter two with the
// prefix `tcp:` as strided's --listen spells it. INVALID_ARGUMENT with the reason for anything
// else.
Result<std::string> TargetOf(const std::string& address);

}  // namespace stride::internal
