#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace stride::cuda {

// A client's compiler options as NVRTC takes them. Everything not on the list is refused: NVRTC has
// options that read and write files. The daemon has checked them before; this is the second lock.
// INVALID_ARGUMENT that names the option.
absl::StatusOr<std::vector<std::string>> TranslateOptions(const std::vector<std::string>& options);

}  // namespace stride::cuda
