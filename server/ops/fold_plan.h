#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "server/ops/binary_function.h"
#include "server/ops/plan.h"

namespace stride::ops {

// A reduction along one axis in the order of its elements. `output` is what they are reduced to;
// input in slot 0, output in slot 1. INVALID_FIELD when more axes than one are reduced.
absl::StatusOr<Plan> PlanFold(const BinaryFunction& function, const ArrayInfo& input,
                              const std::vector<bool>& is_reduced, bool keep_dims,
                              const ArrayInfo& output);

}  // namespace stride::ops
