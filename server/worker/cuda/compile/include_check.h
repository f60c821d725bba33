#pragma once

#include <string_view>

#include "absl/status/status.h"

namespace stride::cuda {

// INVALID_ARGUMENT when an #include in `source` names a file by an absolute path or through "..",
// or does not name it directly: the compiler would print such a file's lines in its log. Errs on
// the side of refusing (a directive in a comment counts). A lock beside the process's sandbox, not
// in its place.
absl::Status CheckIncludes(std::string_view source);

}  // namespace stride::cuda
