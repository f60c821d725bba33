#pragma once

#include <string_view>

#include "absl/status/statusor.h"
#include "server/ops/plan.h"

namespace stride::ops {

// Reads a texture over the contiguous `array`, without the address of its memory. Checks types,
// extents and modes against CUDA's rules and limits, so that a launch means the same on every
// device kind. Errors have paths below `field`.
absl::StatusOr<wire::Texture> ReadTexture(const v1::Texture& texture, const ArrayInfo& array,
                                          std::string_view field);

}  // namespace stride::ops
