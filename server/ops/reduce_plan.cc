#include "server/ops/reduce_plan.h"

#include <utility>

#include "server/ops/collapse.h"
#include "server/ops/elementwise.h"
#include "server/ops/reduce_access.h"

namespace stride::ops {
namespace {

bool IsArg(wire::ReduceCode::Combine combine) {
  return combine == wire::ReduceCode::COMBINE_ARGMIN || combine == wire::ReduceCode::COMBINE_ARGMAX;
}

struct Axes {
  Loop kept;     // strides: of the output, then of the inputs
  Loop reduced;  // of the inputs
};

// The inputs decide the kept axes' order: there is more of them.
Axes SplitAxes(const ReduceSpec& spec) {
  Axes axes;
  axes.kept.strides.resize(spec.inputs.size() + 1);
  axes.reduced.strides.resize(spec.inputs.size());
  const Shape& shape = spec.inputs[0].shape;
  for (size_t i = 0, j = 0; i < shape.size(); ++i) {
    Loop& loop = spec.is_reduced[i] ? axes.reduced : axes.kept;
    loop.extents.push_back(shape[i]);
    const size_t first = spec.is_reduced[i] ? 0 : 1;
    for (size_t k = 0; k < spec.inputs.size(); ++k)
      loop.strides[first + k].push_back(spec.inputs[k].strides[i]);
    if (!spec.is_reduced[i]) loop.strides[0].push_back(spec.output.strides[j]);
    j += !spec.is_reduced[i] || spec.keep_dims;
  }
  return axes;
}

}  // namespace

ReducedShape ReduceShapeOf(absl::Span<const int64_t> shape, const std::vector<bool>& is_reduced,
                           bool keep_dims) {
  ReducedShape reduced;
  for (size_t i = 0; i < shape.size(); ++i) {
    (is_reduced[i] ? reduced.reduced_count : reduced.kept_count) *= shape[i];
    if (!is_reduced[i]) reduced.result.push_back(shape[i]);
    if (is_reduced[i] && keep_dims) reduced.result.push_back(1);
  }
  return reduced;
}

ArrayInfo BroadcastTo(const ArrayInfo& array, const Shape& shape) {
  ArrayInfo view = array;
  view.shape = shape;
  view.strides = BroadcastStrides(array, shape);
  return view;
}

Plan MakeReducePlan(ReduceSpec spec) {
  const size_t num_inputs = spec.inputs.size();
  const Value stored = spec.finish.Cast(spec.finished, spec.output.dtype);
  Axes axes = SplitAxes(spec);
  const Loop kept = Collapse(std::move(axes.kept), AxisOrder::kLocality, false);
  const Loop reduced =
      Collapse(std::move(axes.reduced),
               IsArg(spec.combine) ? AxisOrder::kKeep : AxisOrder::kLocality, false);

  Plan plan;
  plan.outputs.push_back(spec.output);
  auto* launch = plan.task.mutable_reduce();
  wire::ReduceCode* code = plan.code.emplace().mutable_reduce();
  launch->mutable_kept_extents()->Assign(kept.extents.begin(), kept.extents.end());
  launch->mutable_reduced_extents()->Assign(reduced.extents.begin(), reduced.extents.end());
  for (size_t k = 0; k < num_inputs; ++k) {
    std::vector<int64_t> strides = kept.strides[k + 1];
    strides.insert(strides.end(), reduced.strides[k].begin(), reduced.strides[k].end());
    *launch->add_inputs() = MakeOperand(static_cast<uint32_t>(k), spec.inputs[k], strides);
    code->add_input_dtypes(static_cast<int>(spec.inputs[k].dtype));
    plan.bytes += static_cast<double>(spec.inputs[k].size_bytes());
  }
  *launch->mutable_output() =
      MakeOperand(static_cast<uint32_t>(num_inputs), spec.output, kept.strides[0]);
  for (const auto& scalar : spec.map.scalars()) *launch->add_map_scalars() = scalar;
  for (const auto& scalar : spec.finish.scalars()) *launch->add_finish_scalars() = scalar;

  std::vector<Value> mapped = {spec.mapped};
  if (spec.takes_part) mapped.push_back(*spec.takes_part);
  *code->mutable_map() = spec.map.Finish(mapped);
  code->set_combine(spec.combine);
  if (spec.combine_program) *code->mutable_combine_program() = *std::move(spec.combine_program);
  if (spec.identity) *code->mutable_identity() = *std::move(spec.identity);
  code->set_accumulator_dtype(static_cast<int>(spec.accumulator));
  *code->mutable_finish() = spec.finish.Finish({stored});
  code->set_output_dtype(static_cast<int>(spec.output.dtype));
  code->set_kept_rank(static_cast<uint32_t>(kept.extents.size()));
  code->set_reduced_rank(static_cast<uint32_t>(reduced.extents.size()));
  for (size_t k = 0; k < num_inputs; ++k)
    code->add_access(ReducedAccess(*launch, static_cast<int>(k)));
  code->set_kept_contiguous(KeptContiguous(*launch));
  const int64_t elements = spec.inputs[0].num_elements();
  code->set_index_32bit(Fits32Bits(Loop{{elements}, {}}) && ReachFits32Bits(*launch));
  plan.task.set_label(std::move(spec.label));
  plan.bytes += static_cast<double>(spec.output.size_bytes());
  plan.flops = static_cast<double>(elements) * (1 + spec.map.num_operations());
  return plan;
}

}  // namespace stride::ops
