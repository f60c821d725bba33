#pragma once

#include <string_view>

#include "absl/status/status.h"

namespace stride::cuda {

// Formats that the driver can load, distinguished by the first bytes.
enum class ImageKind { kPtx, kCubin, kFatbin };
ImageKind ImageKindOf(std::string_view bytes);

// The driver gets only an image's address and trusts the sizes in it. OK when these stay within
// `bytes`; INVALID_ARGUMENT otherwise, so that a truncated file is not read past its end.
absl::Status CheckImage(std::string_view bytes);

}  // namespace stride::cuda
