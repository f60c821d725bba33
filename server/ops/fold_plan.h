#pragma once

#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "server/ops/binary_function.h"
#include "server/ops/plan.h"

namespace stride::ops {

// A reduction along one axis in the order of its elements.
struct FoldRequest {
  const BinaryFunction& function;
  ArrayInfo input;                           // in slot 0
  std::optional<ArrayInfo> mask;             // in slot 1; selects elements; has the input's shape
  std::optional<wire::ScalarValue> initial;  // precedes the elements; in the accumulator's type
  const std::vector<bool>& is_reduced;
  bool keep_dims = false;
  ArrayInfo output;  // in the next slot
};
// INVALID_FIELD if more than one axis is reduced.
absl::StatusOr<Plan> PlanFold(const FoldRequest& request);

}  // namespace stride::ops
