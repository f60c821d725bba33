#pragma once

#include <string_view>

#include "absl/status/status.h"

namespace stride::cuda {

// What the driver can load, told by the first bytes.
enum class ImageKind { kPtx, kCubin, kFatbin };
ImageKind ImageKindOf(std::string_view bytes);

// The driver takes an image by address alone and believes the sizes written in it. OK when these
// stay within `bytes`, so that a cut-off file is refused instead of read past its end.
// INVALID_ARGUMENT otherwise.
absl::Status CheckImage(std::string_view bytes);

}  // namespace stride::cuda
