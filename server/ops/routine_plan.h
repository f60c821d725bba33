#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "server/ops/collapse.h"
#include "server/ops/planners.h"
#include "server/ops/program_builder.h"

// Common parts of the planners of routines (server/worker/codegen/routines).
namespace stride::ops {

// An operand along the axes of the loop that all share, and along axes of its own.
struct RoutineOperand {
  uint32_t slot = 0;
  ArrayInfo array;
  std::vector<int64_t> strides;  // the loop's, before it is collapsed
  std::vector<int64_t> own_extents, own_strides;

  void AddOwn(size_t axis) {
    own_extents.push_back(array.shape[axis]);
    own_strides.push_back(array.strides[axis]);
  }
};

struct RoutineSpec {
  wire::RoutineCode::Routine routine = wire::RoutineCode::ROUTINE_UNSPECIFIED;
  std::vector<int64_t> extents;  // the loop's
  AxisOrder order = AxisOrder::kLocality;
  std::vector<RoutineOperand> operands;  // inputs, then outputs
  int num_inputs = 0;
  std::vector<int64_t> options;
  std::vector<wire::RoutineCode::ProgramCode> programs;
  std::vector<wire::ScalarValue> scalars;
  std::vector<ArrayInfo> outputs;
};
Plan MakeRoutinePlan(RoutineSpec spec);

// A program that has no constants.
wire::RoutineCode::ProgramCode MakeProgram(const ProgramBuilder& builder, Value result);
// The cast from one type to another, step by step.
wire::RoutineCode::ProgramCode CastProgram(absl::Span<const DType> types);

// For a number among the arguments of ROUTINE_GUFUNC: its type, and how many axes its view has.
inline int64_t GufuncNumberOption(DType dtype, size_t rank) {
  return static_cast<int64_t>(dtype) * 64 + static_cast<int64_t>(rank);
}

// The operand's array. INVALID_FIELD at `field` when it is a scalar.
absl::StatusOr<ArrayInfo> NeedArray(const Input& input, std::string_view field);
// An axis from [-rank, rank) to [0, rank). Errors at `field`.
absl::StatusOr<size_t> NormalizeAxis(int64_t axis, size_t rank, std::string_view field);
// The array's strides but for these axes, where they are 0.
std::vector<int64_t> StridesWithout(const ArrayInfo& array, size_t begin, size_t end);

}  // namespace stride::ops
