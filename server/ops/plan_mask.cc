#include <algorithm>

#include "absl/strings/str_cat.h"
#include "server/base/error.h"
#include "server/ops/elementwise.h"
#include "server/ops/operation_kind.h"
#include "server/ops/routine_plan.h"

// Compress and Nonzero. The number of results is data, so the request declares it and the device
// checks it: docs/decisions/0007-counts-are-declared.md.
namespace stride::ops {
namespace {

absl::Status CheckCount(int64_t count, const ArrayInfo& mask, const std::string& field) {
  if (count >= 0 && count <= mask.num_elements()) return absl::OkStatus();
  return InvalidField(v1::ERROR_REASON_INVALID_FIELD, field,
                      absl::StrCat("as many elements cannot be set. Elements: ",
                                   mask.num_elements(), ", count: ", count));
}

RoutineOperand MaskOperand(const ArrayInfo& mask, uint32_t slot, size_t loop_rank) {
  RoutineOperand operand{.slot = slot, .array = mask};
  for (size_t axis = 0; axis < mask.shape.size(); ++axis) operand.AddOwn(axis);
  operand.strides.assign(loop_rank, 0);
  return operand;
}

absl::StatusOr<Plan> PlanCompress(const v1::Compress& compress, Inputs inputs,
                                  const Input& existing) {
  auto input = NeedArray(inputs[0], "compress.input");
  if (!input.ok()) return input.status();
  auto mask = NeedArray(inputs[1], "compress.mask");
  if (!mask.ok()) return mask.status();
  if (!IsBool(mask->dtype)) {
    return InvalidField(
        v1::ERROR_REASON_DATA_TYPE_MISMATCH, "compress.mask",
        absl::StrCat("the mask is an array of bool, not of ", std::string(Name(mask->dtype))));
  }
  size_t axis = 0;
  if (!input->shape.empty() || compress.axis() != 0) {
    auto normal = NormalizeAxis(compress.axis(), input->shape.size(), "compress.axis");
    if (!normal.ok()) return normal.status();
    axis = *normal;
  }
  const size_t end = axis + mask->shape.size();
  if (end > input->shape.size() ||
      !std::equal(mask->shape.begin(), mask->shape.end(), input->shape.begin() + axis)) {
    return InvalidField(
        v1::ERROR_REASON_SHAPE_MISMATCH, "compress.mask",
        absl::StrCat("the mask has not the shape of the input's axes from ", axis,
                     " on: ", ToString(mask->shape), " for ", ToString(input->shape)));
  }
  if (auto s = CheckCount(compress.count(), *mask, "compress.count"); !s.ok()) return s;
  Shape shape(input->shape.begin(), input->shape.begin() + axis);
  shape.push_back(compress.count());
  shape.insert(shape.end(), input->shape.begin() + end, input->shape.end());
  auto output = ChooseOutput(input->dtype, shape, existing);
  if (!output.ok()) return output.status();

  RoutineSpec spec;
  spec.routine = wire::RoutineCode::ROUTINE_COMPRESS;
  RoutineOperand from{.slot = 0, .array = *input}, to{.slot = 2, .array = *output};
  for (size_t i = 0; i < input->shape.size(); ++i) {
    if (i >= axis && i < end) {
      from.AddOwn(i);
      continue;
    }
    spec.extents.push_back(input->shape[i]);
    from.strides.push_back(input->strides[i]);
    to.strides.push_back(output->strides[i < axis ? i : i + 1 + axis - end]);
  }
  to.AddOwn(axis);
  spec.operands = {MaskOperand(*mask, 1, spec.extents.size()), std::move(from), std::move(to)};
  spec.num_inputs = 2;
  spec.options = {0};
  spec.outputs = {*output};
  return MakeRoutinePlan(std::move(spec));
}

absl::StatusOr<Plan> PlanNonzero(const v1::Nonzero& nonzero, Inputs inputs,
                                 absl::Span<const Input> existing) {
  auto input = NeedArray(inputs[0], "nonzero.input");
  if (!input.ok()) return input.status();
  if (input->shape.empty()) {
    return InvalidField(v1::ERROR_REASON_SHAPE_MISMATCH, "nonzero.input",
                        "an array without axes has no indices");
  }
  if (auto s = CheckCount(nonzero.count(), *input, "nonzero.count"); !s.ok()) return s;
  RoutineSpec spec;
  spec.routine = wire::RoutineCode::ROUTINE_COMPRESS;
  spec.operands = {MaskOperand(*input, 0, 0)};
  for (size_t j = 0; j < input->shape.size(); ++j) {
    auto output =
        ChooseOutput(DType::kInt64, {nonzero.count()}, j < existing.size() ? existing[j] : Input(),
                     absl::StrCat("outputs[", j, "]"));
    if (!output.ok()) return output.status();
    RoutineOperand operand{.slot = static_cast<uint32_t>(1 + j), .array = *output};
    operand.AddOwn(0);
    spec.operands.push_back(std::move(operand));
    spec.outputs.push_back(*output);
  }
  spec.num_inputs = 1;
  spec.options = {1};
  return MakeRoutinePlan(std::move(spec));
}

int NonzeroResults(const v1::Operation&, Inputs inputs, const FunctionTable*) {
  return inputs[0] ? static_cast<int>(inputs[0]->shape.size()) : 1;
}

}  // namespace

const OperationKind kCompressKind = {
    .name = "compress",
    .operands = Reads<&v1::Operation::compress, &v1::Compress::input, &v1::Compress::mask>,
    .plan = PlanBy<&v1::Operation::compress, PlanCompress>,
    .rules = {OneResult, NoKey, NoBatching, Undivided},
};

const OperationKind kNonzeroKind = {
    .name = "nonzero",
    .operands = Reads<&v1::Operation::nonzero, &v1::Nonzero::input>,
    .plan = PlanBy<&v1::Operation::nonzero, PlanNonzero>,
    .rules = {NonzeroResults, NoKey, NoBatching, Undivided},
};

}  // namespace stride::ops
