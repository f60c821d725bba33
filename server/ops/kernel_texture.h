#pragma once

#include <string_view>

#include "absl/status/statusor.h"
#include "server/ops/plan.h"

namespace stride::ops {

// A texture over `array` for a task, but for the place of its memory. Checks types, extents and
// modes against CUDA's rules and limits, with paths below `field`, so that a launch means the same
// on every device kind. The array is contiguous.
absl::StatusOr<wire::Texture> ReadTexture(const v1::Texture& texture, const ArrayInfo& array,
                                          std::string_view field);

}  // namespace stride::ops
