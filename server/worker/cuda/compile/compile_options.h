#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace stride::cuda {

// Converts a client's compiler options to NVRTC's. Options that are not on the list are refused:
// NVRTC has options that read and write files. The daemon has checked them before; this is a second
// barrier. INVALID_ARGUMENT that names the option.
absl::StatusOr<std::vector<std::string>> TranslateOptions(const std::vector<std::string>& options);

}  // namespace stride::cuda
