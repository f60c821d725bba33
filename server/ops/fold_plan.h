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
  ArrayInfo input;                // slot 0
  std::optional<ArrayInfo> mask;  // slot 1; of the input's shape: which elements take part
  std::optional<wire::ScalarValue> initial;  // in front of them, of the accumulator's type
  const std::vector<bool>& is_reduced;
  bool keep_dims = false;
  ArrayInfo output;  // the next slot
};
// INVALID_FIELD when more axes than one are reduced.
absl::StatusOr<Plan> PlanFold(const FoldRequest& request);

}  // namespace stride::ops
