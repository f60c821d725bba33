#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "server/ops/plan.h"
#include "server/ops/sharding.h"

// Sums and reductions along the split axis: each device computes partial results, and one launch on
// one device combines them. Pure functions; any thread.
namespace stride::ops {

// One operation by which a part computes a partial result.
struct PartialStep {
  v1::Operation operation;  // the caller sets its outputs
  bool of_mask = false;     // the only input is the mask, broadcast to the input's shape
  // Index of the finish input that the part stores instead of a result: see WithoutFinish.
  std::optional<int> accumulated;
};

// Steps of an operation with `Division::partial`: the first part runs `first_steps`, other
// non-empty parts run `steps`, and PlanCombine combines the results. If all parts are empty, only
// the first one runs. UNIMPLEMENTED for results that cannot be combined. `result`: the type of the
// operation's result.
struct PartialResults {
  std::vector<PartialStep> first_steps, steps;
  DType result = DType::kFloat64;  // type of the whole result

  // For PlanCombine.
  v1::Operation operation;
};
absl::StatusOr<PartialResults> SplitReduction(const v1::Operation& operation, DType result);

// Changes a planned reduction into a new array: it stores input `input` of its finish
// (wire::ReduceCode) in that input's type.
Plan WithoutFinish(Plan plan, int input);
inline constexpr int kMaxFinishInputs = 4;

// Position of a part in the input.
struct PartPlace {
  int64_t begin = 0, length = 0;  // along the split axis
  bool operator==(const PartPlace&) const = default;
};

// Plans the launch that combines partial results. `partials` has the results of the first part's
// steps, then of the next part's. `input_shape` and `axis` describe the whole input, `output` the
// whole result.
absl::StatusOr<Plan> PlanCombine(const PartialResults& results, absl::Span<const Input> partials,
                                 absl::Span<const PartPlace> places,
                                 const std::vector<int64_t>& input_shape, int axis,
                                 const ArrayInfo& output);

}  // namespace stride::ops
