#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace stride::cuda {

// The answer for a source that NVRTC refused for a reason with a better name than its log: a header
// of the toolkit that this machine lacks (UNIMPLEMENTED, naming the header and its package), host
// code (INVALID_ARGUMENT), a launch inside a kernel (UNIMPLEMENTED). Nothing for other mistakes.
// `log` is clean.
std::optional<absl::Status> KnownRefusal(const std::string& log);

}  // namespace stride::cuda
