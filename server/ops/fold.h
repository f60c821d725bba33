#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "server/ops/scalar.h"

namespace stride::ops {

// Folds an operator on Python numbers by Python's rules: `2 * 3`, `1 / 3`, `-5 // 2`. Returns
// nullopt if the result is no weak number (a comparison) or too large, or if Python would raise.
// The operation then follows NumPy's rules.
std::optional<WeakScalar> Fold(std::string_view op, const std::vector<WeakScalar>& arguments);

}  // namespace stride::ops
