#include "server/ops/fold_plan.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "server/base/error.h"
#include "server/ops/elementwise.h"
#include "server/ops/operation_kind.h"
#include "server/ops/routine_plan.h"

namespace stride::ops {
namespace {

constexpr char kField[] = "reduce_at.indices";

wire::ScalarValue Int64Scalar(int64_t value) {
  return *EncodeScalar(Integer{value}, DType::kInt64, kField);
}

RoutineSpec FoldSpec(const BinaryFunction& function, const ArrayInfo& input,
                     const ArrayInfo& output) {
  RoutineSpec spec;
  spec.routine = wire::RoutineCode::ROUTINE_FOLD;
  spec.programs = {CastProgram({input.dtype, function.dtype, function.accumulator}),
                   CombineCode(function),
                   CastProgram({function.accumulator, function.dtype, output.dtype})};
  spec.outputs = {output};
  return spec;
}

}  // namespace

absl::StatusOr<Plan> PlanFold(const FoldRequest& request) {
  const BinaryFunction& function = request.function;
  const auto reduced = std::count(request.is_reduced.begin(), request.is_reduced.end(), true);
  if (reduced > 1) {
    return InvalidField(
        v1::ERROR_REASON_INVALID_FIELD, "reduction.axes",
        absl::StrCat("the order of elements matters to this function, which reduces "
                     "one axis at a time: ",
                     function.name, "; axes given: ", reduced));
  }
  RoutineSpec spec = FoldSpec(function, request.input, request.output);
  spec.operands = {{.slot = 0, .array = request.input}};
  if (request.mask) spec.operands.push_back({.slot = 1, .array = *request.mask});
  RoutineOperand to{.slot = static_cast<uint32_t>(spec.operands.size()), .array = request.output};
  spec.num_inputs = static_cast<int>(spec.operands.size());
  for (size_t i = 0, j = 0; i < request.input.shape.size(); ++i) {
    const bool is_reduced = request.is_reduced[i];
    for (RoutineOperand& from : spec.operands) {
      if (is_reduced) from.AddOwn(i);
      if (!is_reduced) from.strides.push_back(from.array.strides[i]);
    }
    if (!is_reduced) {
      spec.extents.push_back(request.input.shape[i]);
      to.strides.push_back(request.output.strides[j]);
    }
    j += !is_reduced || request.keep_dims;
  }
  if (reduced == 0) {
    for (RoutineOperand& from : spec.operands) {
      from.own_extents = {1};
      from.own_strides = {0};
    }
  }
  const auto& begin = request.initial ? request.initial : function.identity;
  if (begin) spec.scalars.push_back(*begin);
  spec.options = {0, begin.has_value(), request.mask.has_value(), request.initial.has_value()};
  spec.operands.push_back(std::move(to));
  return MakeRoutinePlan(std::move(spec));
}

namespace {

absl::StatusOr<Plan> PlanReduceAt(const v1::ReduceAt& operation, Inputs inputs,
                                  const Input& existing, const FunctionTable* functions) {
  auto input = NeedArray(inputs[0], "reduce_at.input");
  if (!input.ok()) return input.status();
  auto indices = NeedArray(inputs[1], kField);
  if (!indices.ok()) return indices.status();
  if (indices->shape.size() != 1 || !IsInteger(indices->dtype)) {
    return InvalidField(v1::ERROR_REASON_DATA_TYPE_MISMATCH, kField,
                        "the indices are integers along one axis");
  }
  auto data_type = ReadDataType(operation.data_type(), "reduce_at.data_type");
  if (!data_type.ok()) return data_type.status();
  auto function = FindBinaryFunction({.name = operation.function(),
                                      .input = input->dtype,
                                      .data_type = *data_type,
                                      .field = "reduce_at.function",
                                      .input_field = "reduce_at.input"},
                                     functions);
  if (!function.ok()) return function.status();
  auto axis = NormalizeAxis(operation.axis(), input->shape.size(), "reduce_at.axis");
  if (!axis.ok()) return axis.status();
  Shape shape = input->shape;
  const int64_t count = indices->shape[0];
  shape[*axis] = count;
  auto output = ChooseOutput(function->dtype, shape, existing);
  if (!output.ok()) return output.status();
  if (count > 1 && indices->strides[0] == 0) {
    // The routine distinguishes indices by their addresses.
    Plan plan;
    plan.outputs.push_back(*output);
    plan.converted_inputs = {std::nullopt, indices->dtype};
    return plan;
  }

  RoutineSpec spec = FoldSpec(*function, *input, *output);
  spec.extents = shape;
  RoutineOperand from{
      .slot = 0, .array = *input, .strides = StridesWithout(*input, *axis, *axis + 1)};
  from.AddOwn(*axis);
  RoutineOperand at{.slot = 1, .array = *indices};
  at.strides.assign(shape.size(), 0);
  at.strides[*axis] = indices->strides[0];
  RoutineOperand to{.slot = 2, .array = *output, .strides = output->strides};
  spec.operands = {std::move(from), std::move(at), std::move(to)};
  spec.num_inputs = 2;
  spec.options = {1, 0, 0, 0};
  spec.scalars = {Int64Scalar(count > 1 ? indices->strides[0] : 1), Int64Scalar(count)};
  return MakeRoutinePlan(std::move(spec));
}

absl::Status BatchReduceAt(Batcher& batcher, v1::Operation* operation) {
  auto* reduce = operation->mutable_reduce_at();
  if (batcher.IsBatched(reduce->indices())) return batcher.NoRule(*operation);
  const size_t rank = batcher.Find(reduce->input())->rank();
  return batcher.SetShifted(reduce, reduce->axis(), rank, "reduce_at.axis");
}

}  // namespace

const OperationKind kReduceAtKind = {
    .name = "reduce_at",
    .label = "reduceat ",
    .detail = [](const v1::Operation& o) -> std::string { return o.reduce_at().function(); },
    .operands = Reads<&v1::Operation::reduce_at, &v1::ReduceAt::input, &v1::ReduceAt::indices>,
    .plan = PlanBy<&v1::Operation::reduce_at, PlanReduceAt>,
    .rules = {OneResult, WholeKey, BatchReduceAt, Undivided},
};

}  // namespace stride::ops
