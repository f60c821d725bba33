#include <algorithm>

#include "absl/strings/str_cat.h"
#include "server/base/error.h"
#include "server/ops/binary_function.h"
#include "server/ops/elementwise.h"
#include "server/ops/operation_kind.h"
#include "server/ops/routine_plan.h"

namespace stride::ops {
namespace {

constexpr char kFunction[] = "accumulation.function";
constexpr char kInput[] = "accumulation.input";
constexpr char kInclude[] = "accumulation.include_initial";

absl::StatusOr<size_t> AxisOf(const v1::Accumulation& accumulation, size_t rank) {
  if (accumulation.has_axis() || rank == 0)
    return NormalizeAxis(accumulation.axis(), rank, "accumulation.axis");
  if (rank == 1) return size_t{0};
  return InvalidField(v1::ERROR_REASON_INVALID_FIELD, "accumulation.axis",
                      absl::StrCat("say along which of the axes; there are ", rank));
}

absl::Status CheckInitial(const v1::Accumulation& accumulation, const BinaryFunction& function) {
  if (!accumulation.include_initial() && !accumulation.exclusive()) return absl::OkStatus();
  const char* field = accumulation.exclusive() ? "accumulation.exclusive" : kInclude;
  if (accumulation.include_initial() && accumulation.exclusive()) {
    return InvalidField(v1::ERROR_REASON_INVALID_FIELD, field,
                        "either this or `include_initial`, not both");
  }
  if (function.identity) return absl::OkStatus();
  return InvalidField(v1::ERROR_REASON_INVALID_FIELD, field,
                      absl::StrCat("the function has no identity to begin with: ", function.name));
}

// From the last element of its own axis to the first.
void Reverse(RoutineOperand* operand) {
  const int64_t n = operand->own_extents[0];
  if (n == 0) return;
  operand->array.offset += (n - 1) * operand->own_strides[0];
  operand->own_strides[0] *= -1;
}

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
  if (auto s = CheckInitial(accumulation, *function); !s.ok()) return s;
  const bool begins = accumulation.include_initial() || accumulation.exclusive();
  if (begins) spec.scalars.push_back(*function->identity);
  if (accumulation.include_initial()) ++shape[*axis];
  auto output = ChooseOutput(dtype, shape, existing);
  if (!output.ok()) return output.status();

  spec.routine = wire::RoutineCode::ROUTINE_ACCUMULATE;
  spec.programs = {CastProgram({input->dtype, dtype, accumulator}), CombineCode(*function),
                   CastProgram({accumulator, dtype, output->dtype})};
  spec.options = {begins, function->associative};
  spec.extents = input->shape;
  spec.extents[*axis] = 1;
  spec.operands = {{.slot = 0, .array = *input}, {.slot = 1, .array = *output}};
  for (RoutineOperand& operand : spec.operands) {
    operand.strides = StridesWithout(operand.array, *axis, *axis + 1);
    operand.AddOwn(*axis);
  }
  if (accumulation.reverse()) {
    for (RoutineOperand& operand : spec.operands) Reverse(&operand);
  }
  // The last element comes before none.
  if (accumulation.exclusive()) {
    int64_t& n = spec.operands[0].own_extents[0];
    if (n == 0) spec.extents[*axis] = 0;
    n = std::max<int64_t>(n - 1, 0);
  }
  spec.num_inputs = 1;
  spec.outputs = {*output};
  return MakeRoutinePlan(std::move(spec));
}

absl::Status BatchAccumulation(Batcher& batcher, v1::Operation* operation) {
  auto* accumulation = operation->mutable_accumulation();
  const size_t rank = batcher.Find(accumulation->input())->rank();
  if (!accumulation->has_axis() && rank != 1) return batcher.NoRule(*operation);
  return batcher.SetShifted(accumulation, accumulation->axis(), rank, "accumulation.axis");
}

}  // namespace

const OperationKind kAccumulationKind = {
    .name = "accumulation",
    .label = "accumulate ",
    .detail = [](const v1::Operation& o) -> std::string { return o.accumulation().function(); },
    .operands = Reads<&v1::Operation::accumulation, &v1::Accumulation::input>,
    .plan = PlanBy<&v1::Operation::accumulation, PlanAccumulation>,
    .rules = {OneResult, WholeKey, BatchAccumulation, Undivided},
};

}  // namespace stride::ops
