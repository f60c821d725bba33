#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "server/ops/plan.h"
#include "server/ops/sharding.h"

// What is summed over (or reduced) along the axis that is split: each device makes partial results,
// which one launch on one device combines. Pure functions; any thread.
namespace stride::ops {

// One of the operations by which a part makes its partial results.
struct PartialStep {
  v1::Operation operation;  // its outputs are the caller's business
  bool of_mask = false;     // its one input is the mask, broadcast to the shape of the input
  // The part stores this input of its finish, not a result: see WithoutFinish.
  std::optional<int> accumulated;
};

// How an operation with `Division::partial` is computed: `steps` on each part that is not empty (on
// the first, where all are), of which the first part's are `first_steps`; then PlanCombine.
// `result`: the type of the whole's result. UNIMPLEMENTED for what cannot be combined.
struct PartialResults {
  std::vector<PartialStep> first_steps, steps;
  DType result = DType::kFloat64;  // of the whole

  // Kept for PlanCombine.
  v1::Operation operation;
};
absl::StatusOr<PartialResults> SplitReduction(const v1::Operation& operation, DType result);

// A planned reduction into a new array that stores input `input` of its finish (wire::ReduceCode),
// in that input's type.
Plan WithoutFinish(Plan plan, int input);
inline constexpr int kMaxFinishInputs = 4;

// Where a part lies in the input.
struct PartPlace {
  int64_t begin = 0, length = 0;  // along the axis that is split
  bool operator==(const PartPlace&) const = default;
};

// `partials`: the results of all steps of the first part, then of the next; `input_shape` and
// `axis` of the whole input; `output`: where the whole's result goes.
absl::StatusOr<Plan> PlanCombine(const PartialResults& results, absl::Span<const Input> partials,
                                 absl::Span<const PartPlace> places,
                                 const std::vector<int64_t>& input_shape, int axis,
                                 const ArrayInfo& output);

}  // namespace stride::ops
