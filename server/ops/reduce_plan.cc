#include "server/ops/reduce_plan.h"

#include <algorithm>
#include <utility>

#include "server/ops/collapse.h"
#include "server/ops/elementwise.h"
#include "server/ops/reduce_access.h"

namespace stride::ops {
namespace {

struct Axes {
  Loop kept;     // strides: of the output, then of the inputs
  Loop reduced;  // strides: the inputs'
};

// The inputs decide the kept axes' order: there is more of them.
Axes SplitAxes(const ReduceSpec& spec, absl::Span<const ArrayInfo> inputs) {
  Axes axes;
  axes.kept.strides.resize(inputs.size() + 1);
  axes.reduced.strides.resize(inputs.size());
  const Shape& shape = inputs[0].shape;
  for (size_t i = 0, j = 0; i < shape.size(); ++i) {
    Loop& loop = spec.is_reduced[i] ? axes.reduced : axes.kept;
    loop.extents.push_back(shape[i]);
    const size_t first = spec.is_reduced[i] ? 0 : 1;
    for (size_t k = 0; k < inputs.size(); ++k)
      loop.strides[first + k].push_back(inputs[k].strides[i]);
    if (!spec.is_reduced[i]) loop.strides[0].push_back(spec.output.strides[j]);
    j += !spec.is_reduced[i] || spec.keep_dims;
  }
  return axes;
}

Axes CollapsedAxes(const ReduceSpec& spec, absl::Span<const ArrayInfo> inputs) {
  Axes axes = SplitAxes(spec, inputs);
  axes.kept = Collapse(std::move(axes.kept), AxisOrder::kLocality, false);
  axes.reduced = Collapse(std::move(axes.reduced),
                          IsArg(spec.combine) ? AxisOrder::kKeep : AxisOrder::kLocality, false);
  return axes;
}

// An array of computed elements takes part: as the last one it decides the order of the axes, and
// its axes are divided, never merged.
Axes AxesOfInputs(const ReduceSpec& spec) {
  if (!spec.computed) return CollapsedAxes(spec, spec.inputs);
  std::vector<ArrayInfo> inputs = spec.inputs;
  inputs.push_back(spec.computed->array);
  return CollapsedAxes(spec, inputs);
}

std::vector<int64_t> StridesOf(const Axes& axes, size_t input) {
  std::vector<int64_t> strides = axes.kept.strides[input + 1];
  const std::vector<int64_t>& reduced = axes.reduced.strides[input];
  strides.insert(strides.end(), reduced.begin(), reduced.end());
  return strides;
}

// Without the repetitions of a broadcast.
int64_t DistinctBytes(const ArrayInfo& array) {
  int64_t bytes = ItemSize(array.dtype);
  for (size_t i = 0; i < array.shape.size(); ++i)
    bytes *= array.strides[i] == 0 ? std::min<int64_t>(array.shape[i], 1) : array.shape[i];
  return bytes;
}

void SetExtents(const Axes& axes, wire::ReduceLaunch* launch) {
  launch->mutable_kept_extents()->Assign(axes.kept.extents.begin(), axes.kept.extents.end());
  launch->mutable_reduced_extents()->Assign(axes.reduced.extents.begin(),
                                            axes.reduced.extents.end());
}

}  // namespace

void SetComputed(const wire::ReduceLaunch& array, wire::ReduceLaunch* launch,
                 wire::ReduceCode* code) {
  wire::ReduceCode::Computed* computed = code->mutable_computed();
  computed->set_dtype(array.inputs(0).dtype());
  computed->set_access(ReducedAccess(array, 0));
  computed->set_reduced_rank(static_cast<uint32_t>(array.reduced_extents_size()));
  // The inputs' axes divide those of the array.
  int axis = launch->reduced_extents_size();
  uint32_t num_axes = 0;
  if (array.reduced_extents_size() > 0) {
    const int64_t row = array.reduced_extents(array.reduced_extents_size() - 1);
    int64_t extent = 1;
    do {
      extent *= launch->reduced_extents(--axis);
      ++num_axes;
    } while (extent != row && axis > 0);
  }
  computed->set_row_axes(num_axes);
  launch->clear_array();
  const bool same = std::equal(array.kept_extents().begin(), array.kept_extents().end(),
                               launch->kept_extents().begin(), launch->kept_extents().end()) &&
                    std::equal(array.reduced_extents().begin(), array.reduced_extents().end(),
                               launch->reduced_extents().begin(), launch->reduced_extents().end());
  if (!same || KeptContiguous(*launch) != KeptContiguous(array)) *launch->mutable_array() = array;
  computed->clear_inner_access();
  for (int k = 0; k < launch->inputs_size(); ++k)
    computed->add_inner_access(InnerAccess(*launch, k));
}

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
  const Axes axes = AxesOfInputs(spec);

  Plan plan;
  plan.outputs.push_back(spec.output);
  auto* launch = plan.task.mutable_reduce();
  wire::ReduceCode* code = plan.code.emplace().mutable_reduce();
  SetExtents(axes, launch);
  for (size_t k = 0; k < num_inputs; ++k) {
    const uint32_t slot = spec.computed ? spec.computed->slots[k] : static_cast<uint32_t>(k);
    *launch->add_inputs() = MakeOperand(slot, spec.inputs[k], StridesOf(axes, k));
    code->add_input_dtypes(static_cast<int>(spec.inputs[k].dtype));
    plan.bytes += static_cast<double>(DistinctBytes(spec.inputs[k]));
  }
  const uint32_t output_slot =
      spec.computed ? spec.computed->output_slot : static_cast<uint32_t>(num_inputs);
  *launch->mutable_output() = MakeOperand(output_slot, spec.output, axes.kept.strides[0]);
  if (spec.computed) {
    const Axes whole = CollapsedAxes(spec, absl::MakeConstSpan(&spec.computed->array, 1));
    wire::ReduceLaunch array;
    SetExtents(whole, &array);
    *array.add_inputs() = MakeOperand(0, spec.computed->array, StridesOf(whole, 0));
    SetComputed(array, launch, code);
  }
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
  code->set_kept_rank(static_cast<uint32_t>(axes.kept.extents.size()));
  code->set_reduced_rank(static_cast<uint32_t>(axes.reduced.extents.size()));
  for (size_t k = 0; k < num_inputs; ++k)
    code->add_access(ReducedAccess(*launch, static_cast<int>(k)));
  code->set_kept_contiguous(KeptContiguous(*launch));
  const int64_t elements = spec.inputs[0].num_elements();
  code->set_index_32bit(Fits32Bits(Loop{{elements}, {}}) && ReachFits32Bits(*launch));
  plan.bytes += static_cast<double>(spec.output.size_bytes());
  plan.flops = static_cast<double>(elements) * (1 + spec.map.num_operations());
  return plan;
}

}  // namespace stride::ops
