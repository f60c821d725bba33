// Device printf: formats one call's arguments.
#pragma once

#include <string>

#include "cpucuda/runtime/block_context.h"

namespace stride::cpucuda {

// Appends the text; stops at `limit` bytes in `out`. A conversion without an argument, or %n, is
// printed as it stands: the format comes from a client. Returns false when something had to be cut
// off.
bool FormatDevicePrint(const char* format, const PrintArgument* arguments, unsigned num_arguments,
                       size_t limit, std::string& out);

}  // namespace stride::cpucuda
