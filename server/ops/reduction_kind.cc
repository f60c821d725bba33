#include <algorithm>

#include "server/ops/operation_kind.h"

// The rules of reductions but for the planner (plan_reduction.cc).
namespace stride::ops {
namespace {

void AddReductionOperands(const v1::Operation& operation, OperandList& list) {
  const v1::Reduction& reduction = operation.reduction();
  if (reduction.has_expression()) {
    AddExpressionInputs(reduction.expression(), list);
  } else {
    list.Add(reduction.input());
  }
  list.AddEach(reduction.more_inputs());
  if (reduction.has_where()) list.Add(reduction.where());
}

void CheckReductionLists(const v1::Operation& operation, ListLimits& limits) {
  Bounded<&v1::Operation::reduction, kMaxListedAxes, &v1::Reduction::axes_size,
          &v1::Reduction::more_inputs_size>(operation, limits);
  limits.Check("reduction.expression.inputs", operation.reduction().expression().inputs_size(),
               kMaxListedInputs);
}

bool ReductionKey(const OperationView& operation, const TenantId&, KeyWriter& key) {
  const v1::Reduction& reduction = operation->reduction();
  key.Add(reduction.function());
  key.AddText(reduction.function_name());
  key.Add(reduction.data_type());
  key.Add(reduction.keep_dims());
  key.Add(reduction.axes_size());
  for (int32_t axis : reduction.axes()) key.Add(axis);
  key.Add(reduction.has_input());
  key.AddOperand(reduction.input());
  key.Add(reduction.has_expression());
  if (reduction.has_expression()) AddExpressionKey(reduction.expression(), key);
  key.AddOperands(reduction.more_inputs());
  key.Add(reduction.has_initial());
  if (reduction.has_initial()) key.AddMessage(reduction.initial());
  key.Add(reduction.has_where());
  if (reduction.has_where()) key.AddOperand(reduction.where());
  key.Add(reduction.skip_nan());
  key.Add(reduction.correction());
  return true;
}

// Numbers, and places among elements of several axes: neither can be said by axes, so that all of
// an element goes along one.
absl::Status BatchWholeElements(Batcher& batcher, v1::Operation* operation, size_t rank) {
  auto* reduction = operation->mutable_reduction();
  for (v1::Operand* operand : batcher.OperandsOf(operation)) {
    const Batched array = *batcher.Find(*operand);
    const bool single =
        operation->reduction().more_inputs_size() == 0 && !operation->reduction().has_expression();
    if (rank > 0 && (!array.batched || !single)) return batcher.NoRule(*operation);
    Shape shape(array.info.shape.begin(), array.info.shape.begin() + (array.batched ? 1 : 0));
    shape.push_back(1);
    for (size_t i = array.batched ? 1 : 0; i < array.info.shape.size(); ++i)
      shape.back() *= array.info.shape[i];
    auto flat = batcher.Reordered(array, shape);
    if (!flat.ok()) return flat.status();
    batcher.Replace(operand, *flat);
  }
  const bool keeps = reduction->keep_dims() && rank > 0;
  reduction->clear_axes();
  reduction->add_axes(1);
  reduction->set_keep_dims(false);
  if (!keeps) return absl::OkStatus();
  const v1::Output output = operation->outputs(0);
  if (output.existing()) return batcher.NoRule(*operation);
  Shape shape(rank + 1, 1);
  shape[0] = batcher.size();
  return batcher.FinishReshaped(operation, {shape});
}

absl::Status BatchReduction(Batcher& batcher, v1::Operation* operation) {
  auto* reduction = operation->mutable_reduction();
  const size_t rank = batcher.RankOf(operation);
  std::vector<int32_t> axes(reduction->axes().begin(), reduction->axes().end());
  auto normal = NormalizeAxes(axes, rank, "reduction.axes");
  if (!normal.ok()) return normal.status();
  const bool is_index = reduction->function() == v1::Reduction::FUNCTION_ARGMIN ||
                        reduction->function() == v1::Reduction::FUNCTION_ARGMAX;
  if (rank == 0 || (normal->empty() && is_index && rank > 1))
    return BatchWholeElements(batcher, operation, rank);
  if (absl::Status status = batcher.Align(operation); !status.ok()) return status;
  reduction->clear_axes();
  if (normal->empty()) {
    for (size_t axis = 0; axis < rank; ++axis) reduction->add_axes(static_cast<int32_t>(axis + 1));
  }
  for (int axis : *normal) reduction->add_axes(axis + 1);
  return absl::OkStatus();
}

absl::StatusOr<LoopAxes> DivideReduction(const v1::Operation& operation,
                                         absl::Span<const SpreadArray> inputs,
                                         absl::Span<const Shape>) {
  const v1::Reduction& reduction = operation.reduction();
  std::vector<Shape> shapes;
  for (const SpreadArray& input : inputs) shapes.push_back(input.shape);
  auto shape = BroadcastShapes(shapes, "reduction");
  if (!shape.ok()) return shape.status();
  std::vector<int32_t> given(reduction.axes().begin(), reduction.axes().end());
  auto axes = NormalizeAxes(given, shape->size(), "reduction.axes");
  if (!axes.ok()) return axes.status();
  LoopAxes loop;
  for (const SpreadArray& input : inputs)
    loop.input_axes.push_back(BroadcastAxes(input.shape, *shape));
  std::vector<int> output;
  int next = 0;
  for (size_t i = 0; i < shape->size(); ++i) {
    const bool reduced =
        axes->empty() || std::count(axes->begin(), axes->end(), static_cast<int>(i)) > 0;
    output.push_back(reduced ? -1 : next);
    next += !reduced || reduction.keep_dims();
  }
  loop.output_axes.push_back(std::move(output));
  return loop;
}

}  // namespace

const OperationKind kReductionKind = {
    .name = "reduction",
    .label = "reduce ",
    .detail =
        [](const v1::Operation& o) {
          const v1::Reduction& reduction = o.reduction();
          if (!reduction.function_name().empty()) return reduction.function_name();
          const char* prefix = reduction.skip_nan() ? "nan" : "";
          return prefix + FunctionLabel(v1::Reduction::Function_Name(reduction.function()));
        },
    .operands = AddReductionOperands,
    .plan = PlanBy<&v1::Operation::reduction, PlanReduction>,
    .rules = {OneResult, ReductionKey, BatchReduction, DivideReduction},
    .lists = CheckReductionLists,
};

}  // namespace stride::ops
