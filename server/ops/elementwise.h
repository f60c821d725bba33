#pragma once

#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "server/ops/planners.h"
#include "server/ops/program_builder.h"
#include "server/ops/shape.h"

// Common parts of the planners of elementwise loops.
namespace stride::ops {

// Whether one kernel can be made of the program, with so many outputs and `num_scalars` constants
// of other programs. SIZE_LIMIT at `field` otherwise.
absl::Status CheckProgramSize(const ProgramBuilder& builder, size_t num_outputs,
                              std::string_view field, size_t num_scalars = 0);

// An operand of the request as the argument of an operation: the array in `slot`, or its scalar.
absl::StatusOr<Argument> ToArgument(ProgramBuilder& builder, const v1::Operand& operand,
                                    const Input& input, uint32_t slot, std::string_view field);

// The array that a result of this type and shape goes to: a new one, or the existing one if NumPy's
// `out=` would take it (same shape; a cast that is allowed). Errors at `field`.
absl::StatusOr<ArrayInfo> ChooseOutput(DType dtype, const Shape& shape, const Input& existing,
                                       std::string_view field = "outputs[0]",
                                       Casting casting = Casting::kSameKind);

// That no two elements of an array that is to be written share memory by a stride of zero.
absl::Status CheckWritable(const ArrayInfo& array, std::string_view field);

// The plan of one loop that stores `result`, cast to the output's type, over the output's shape, to
// which all inputs are known to broadcast.
absl::StatusOr<Plan> PlanLoop(ProgramBuilder& builder, Value result, Inputs inputs,
                              const ArrayInfo& output, std::string_view field);
// The same with several results, whose outputs have one shape. The program may also read an
// output's element before it is written: slot inputs.size() + j.
absl::StatusOr<Plan> PlanLoop(ProgramBuilder& builder, absl::Span<const Value> results,
                              Inputs inputs, absl::Span<const ArrayInfo> outputs,
                              std::string_view field);

// An operand of a launch: `slot` in place of an arena, the first element's offset, `strides` along
// the launch's axes.
wire::Operand MakeOperand(uint32_t slot, const ArrayInfo& array,
                          const std::vector<int64_t>& strides);

}  // namespace stride::ops
