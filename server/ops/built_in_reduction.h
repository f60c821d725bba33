#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/ops/program_builder.h"
#include "server/ops/promotion.h"
#include "server/store/array_info.h"
#include "server/wire/plan.pb.h"
#include "stride/v1/operation.pb.h"

// The functions of v1::Reduction: their types, the value of an element and the result of all.
namespace stride::ops {

struct BuiltInReduction {
  v1::Reduction::Function function;
  const char* name;
  wire::ReduceCode::Combine combine;
  // NumPy's ufunc that combines two results, whose reduction this is; else empty.
  std::string_view ufunc = "";

  bool has_identity() const;
  bool is_variance() const {
    return function == v1::Reduction::FUNCTION_VAR || function == v1::Reduction::FUNCTION_STD;
  }
  // The result's type when none is requested.
  DType DefaultType(DType input) const;
  // DATA_TYPE_MISMATCH: elements of type `input` have no result of this type.
  absl::Status CheckType(DType input, DType result) const;
  // The type in which values are combined.
  DType AccumulatorType(DType input, DType result) const;
  // The value of an element, of type `accumulator`.
  absl::StatusOr<Value> MapValue(ProgramBuilder& builder, Value element, DType accumulator) const;
  // The result from the combined values of `count` elements, or of `counted` where only some take
  // part. `extras`: of the operation.
  absl::StatusOr<Value> FinishValue(ProgramBuilder& builder, Value value,
                                    std::optional<Value> counted, int64_t count,
                                    const struct ReductionExtras& extras) const;
};
// Null: there is none.
const BuiltInReduction* FindBuiltInReduction(v1::Reduction::Function function);
const BuiltInReduction* FindBuiltInReduction(std::string_view ufunc);

// NumPy's `initial=`, `where=` and `ddof=`, and what makes its nansum of sum.
struct ReductionExtras {
  std::optional<WeakScalar> initial;
  std::optional<ArrayInfo> mask;
  bool skip_nan = false;
  double correction = 0;
};

}  // namespace stride::ops
