#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace stride::cuda {

// A better error than the log for some refused sources: a header of the toolkit that this machine
// lacks (UNIMPLEMENTED, naming the header and its package), host code (INVALID_ARGUMENT), a launch
// inside a kernel (UNIMPLEMENTED). nullopt for other mistakes. `log`: from CleanLog.
std::optional<absl::Status> KnownRefusal(const std::string& log);

}  // namespace stride::cuda
