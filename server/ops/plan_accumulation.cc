#include "absl/strings/str_cat.h"
#include "server/base/error.h"
#include "server/ops/binary_function.h"
#include "server/ops/elementwise.h"
#include "server/ops/routine_plan.h"

namespace stride::ops {
namespace {

constexpr char kFunction[] = "accumulation.function";
constexpr char kInput[] = "accumulation.input";

absl::StatusOr<size_t> AxisOf(const v1::Accumulation& accumulation, size_t rank) {
  if (accumulation.has_axis() || rank == 0)
    return NormalizeAxis(accumulation.axis(), rank, "accumulation.axis");
  if (rank == 1) return size_t{0};
  return InvalidField(v1::ERROR_REASON_INVALID_FIELD, "accumulation.axis",
                      absl::StrCat("say along which of the axes; there are ", rank));
}

}  // namespace

absl::StatusOr<Plan> PlanAccumulation(const v1::Accumulation& accumulation, Inputs inputs,
                                      const Input& existing, const FunctionTable* functions) {
  auto input = NeedArray(inputs[0], kInput);
  if (!input.ok()) return input.status();
  auto data_type = ReadDataType(accumulation.data_type(), "accumulation.data_type");
  if (!data_type.ok()) return data_type.status();
  auto function = FindBinaryFunction({.name = accumulation.function(),
                                      .input = input->dtype,
                                      .data_type = *data_type,
                                      .field = kFunction,
                                      .input_field = kInput},
                                     functions);
  if (!function.ok()) return function.status();
  auto axis = AxisOf(accumulation, input->shape.size());
  if (!axis.ok()) return axis.status();

  RoutineSpec spec;
  const DType dtype = function->dtype, accumulator = function->accumulator;
  Shape shape = input->shape;
  if (accumulation.include_initial()) {
    if (!function->identity) {
      return InvalidField(
          v1::ERROR_REASON_INVALID_FIELD, "accumulation.include_initial",
          absl::StrCat("the function has no identity to begin with: ", function->name));
    }
    spec.scalars.push_back(*function->identity);
    ++shape[*axis];
  }
  auto output = ChooseOutput(dtype, shape, existing);
  if (!output.ok()) return output.status();

  spec.routine = wire::RoutineCode::ROUTINE_ACCUMULATE;
  spec.programs = {CastProgram({input->dtype, dtype, accumulator}), CombineCode(*function),
                   CastProgram({accumulator, dtype, output->dtype})};
  spec.options = {accumulation.include_initial(), function->associative};
  spec.extents = input->shape;
  spec.extents[*axis] = 1;
  spec.operands = {{.slot = 0, .array = *input}, {.slot = 1, .array = *output}};
  for (RoutineOperand& operand : spec.operands) {
    operand.strides = StridesWithout(operand.array, *axis, *axis + 1);
    operand.AddOwn(*axis);
  }
  spec.num_inputs = 1;
  spec.outputs = {*output};
  spec.label = absl::StrCat("accumulate ", function->name);
  return MakeRoutinePlan(std::move(spec));
}

}  // namespace stride::ops
