#pragma once

#include <string_view>

#include "absl/status/status.h"

namespace stride::cuda {

// INVALID_ARGUMENT when an #include in `source` has an absolute path or a "..", or does not name
// its file directly: the compiler would print such a file's lines in its log. Errs on the side of
// refusal (a directive in a comment counts). A second barrier in addition to the process's sandbox.
absl::Status CheckIncludes(std::string_view source);

}  // namespace stride::cuda
