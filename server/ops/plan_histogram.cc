#include <cmath>

#include "absl/strings/str_cat.h"
#include "server/base/error.h"
#include "server/ops/binary_function.h"
#include "server/ops/elementwise.h"
#include "server/ops/operation_kind.h"
#include "server/ops/routine_plan.h"

namespace stride::ops {
namespace {

constexpr char kInput[] = "histogram.input";
constexpr char kEdges[] = "histogram.edges";
constexpr char kWeights[] = "histogram.weights";
constexpr char kUniform[] = "histogram.uniform";

absl::Status CheckReal(const ArrayInfo& array, const char* field) {
  if (!IsComplex(array.dtype)) return absl::OkStatus();
  return InvalidField(v1::ERROR_REASON_DATA_TYPE_MISMATCH, field,
                      "complex numbers lie in no bin, since they have no order");
}

absl::StatusOr<int64_t> CountUniform(const v1::Histogram::Uniform& uniform) {
  if (uniform.count() < 1) {
    return InvalidField(v1::ERROR_REASON_INVALID_FIELD, absl::StrCat(kUniform, ".count"),
                        absl::StrCat("there is at least one bin; got ", uniform.count()));
  }
  const double width = uniform.high() - uniform.low();
  if (!(width > 0) || !std::isfinite(width)) {
    return InvalidField(v1::ERROR_REASON_INVALID_FIELD, absl::StrCat(kUniform, ".high"),
                        absl::StrCat("the bins' range is finite and rises; it is from ",
                                     uniform.low(), " to ", uniform.high()));
  }
  return uniform.count();
}

absl::StatusOr<int64_t> CountEdges(const Input& input) {
  auto edges = NeedArray(input, kEdges);
  if (!edges.ok()) return edges.status();
  if (auto s = CheckReal(*edges, kEdges); !s.ok()) return s;
  if (edges->shape.size() == 1 && edges->shape[0] >= 2) return edges->shape[0] - 1;
  return InvalidField(
      v1::ERROR_REASON_SHAPE_MISMATCH, kEdges,
      absl::StrCat("the edges are two or more along one axis, not ", ToString(edges->shape)));
}

RoutineOperand AllOwn(const ArrayInfo& array, uint32_t slot) {
  RoutineOperand operand{.slot = slot, .array = array};
  for (size_t axis = 0; axis < array.shape.size(); ++axis) operand.AddOwn(axis);
  return operand;
}

absl::StatusOr<Plan> PlanHistogram(const v1::Histogram& histogram, Inputs inputs,
                                   const Input& existing) {
  auto input = NeedArray(inputs[0], kInput);
  if (!input.ok()) return input.status();
  if (auto s = CheckReal(*input, kInput); !s.ok()) return s;
  if (histogram.bins_case() == v1::Histogram::BINS_NOT_SET) {
    return InvalidField(v1::ERROR_REASON_INVALID_FIELD, kUniform,
                        "say which bins: either these or `edges`");
  }
  const bool uniform = histogram.has_uniform(), weighted = histogram.has_weights();
  auto count = uniform ? CountUniform(histogram.uniform()) : CountEdges(inputs[1]);
  if (!count.ok()) return count.status();
  const uint32_t weights_slot = uniform ? 1 : 2;
  DType result = DType::kInt64;
  if (weighted) {
    auto weights = NeedArray(inputs[weights_slot], kWeights);
    if (!weights.ok()) return weights.status();
    if (weights->shape != input->shape) {
      return InvalidField(v1::ERROR_REASON_SHAPE_MISMATCH, kWeights,
                          absl::StrCat("each element has a weight: ", ToString(weights->shape),
                                       " for ", ToString(input->shape)));
    }
    result = weights->dtype;
    if (IsBool(result) || IsInteger(result)) result = DType::kFloat64;
  }
  auto output = ChooseOutput(result, {*count}, existing);
  if (!output.ok()) return output.status();

  auto add = FindBinaryFunction({.name = "add", .input = result, .field = kInput}, nullptr);
  if (!add.ok()) return add.status();
  RoutineSpec spec;
  spec.routine = wire::RoutineCode::ROUTINE_HISTOGRAM;
  // The input stands for what is not given.
  const uint32_t edges_at = uniform ? 0 : 1, weights_at = weighted ? weights_slot : 0;
  spec.operands = {AllOwn(*input, 0), AllOwn(*inputs[edges_at], edges_at),
                   AllOwn(*inputs[weights_at], weights_at),
                   AllOwn(*output, static_cast<uint32_t>(inputs.size()))};
  spec.num_inputs = 3;
  const DType edges = inputs[edges_at]->dtype, weight = inputs[weights_at]->dtype;
  const DType common = PromoteTypes(input->dtype, edges);
  spec.programs = {CastProgram({weight, add->dtype, add->accumulator}), CombineCode(*add),
                   CastProgram({add->accumulator, add->dtype, output->dtype}),
                   CastProgram({input->dtype, common, ComputeType(common)}),
                   CastProgram({edges, common, ComputeType(common)})};
  spec.options = {uniform, weighted};
  spec.scalars = {*add->identity};
  for (double bound : {histogram.uniform().low(), histogram.uniform().high()})
    spec.scalars.push_back(*EncodeScalar(bound, DType::kFloat64, kUniform));
  spec.outputs = {*output};
  return MakeRoutinePlan(std::move(spec));
}

}  // namespace

const OperationKind kHistogramKind = {
    .name = "histogram",
    .operands =
        [](const v1::Operation& o, OperandList& list) {
          list.Add(o.histogram().input());
          if (o.histogram().has_edges()) list.Add(o.histogram().edges());
          if (o.histogram().has_weights()) list.Add(o.histogram().weights());
        },
    .plan = PlanBy<&v1::Operation::histogram, PlanHistogram>,
    .rules = {OneResult, WholeKey, NoBatching, Undivided},
};

}  // namespace stride::ops
