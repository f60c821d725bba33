#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "server/ops/scalar.h"

namespace stride::ops {

// An operator on Python numbers, as Python computes it: `2 * 3`, `1 / 3`, `-5 // 2`. nullopt when
// the operator makes no weak number of them (a comparison), the result would not fit, or Python
// would raise; then the operation is left to NumPy's rules.
std::optional<WeakScalar> Fold(std::string_view op, const std::vector<WeakScalar>& arguments);

}  // namespace stride::ops
