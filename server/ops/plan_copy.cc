#include "absl/strings/str_cat.h"
#include "server/base/error.h"
#include "server/ops/elementwise.h"
#include "server/ops/operation_kind.h"
#include "server/ops/promotion.h"

namespace stride::ops {
namespace {

absl::StatusOr<Plan> PlanMove(const v1::Copy& copy, const ArrayInfo& input, const Input& existing) {
  if (copy.data_type() != 0) {
    return InvalidField(
        v1::ERROR_REASON_INVALID_FIELD, "copy.data_type",
        "a move keeps the bytes as they are; leave data_type unset, or copy without move");
  }
  if (existing) {
    return InvalidField(v1::ERROR_REASON_INVALID_FIELD, "outputs[0].existing",
                        "a move makes a new array that shares the buffer; copy without move to "
                        "overwrite an existing one");
  }
  Plan plan;
  plan.outputs.push_back(input);
  plan.is_view = true;
  return plan;
}

bool IsPlainCopy(const ArrayInfo& from, const ArrayInfo& to) {
  return from.dtype == to.dtype && from.IsContiguous() && to.IsContiguous() &&
         from.num_elements() == to.num_elements();
}

Plan CopyBytesPlan(const ArrayInfo& from, const ArrayInfo& to) {
  Plan plan;
  plan.outputs.push_back(to);
  auto* copy = plan.task.mutable_copy_bytes();
  copy->set_from_arena(0);
  copy->set_from_offset(static_cast<uint64_t>(from.offset));
  copy->set_to_arena(1);
  copy->set_to_offset(static_cast<uint64_t>(to.offset));
  copy->set_size(static_cast<uint64_t>(from.size_bytes()));
  plan.bytes = 2.0 * static_cast<double>(from.size_bytes());
  return plan;
}

// An explicit data_type may change the kind, as NumPy's astype; an existing output may not.
absl::StatusOr<ArrayInfo> CopyTarget(DType dtype, bool explicit_type, const Shape& shape,
                                     const Input& existing) {
  if (explicit_type && existing && existing->dtype != dtype) {
    return InvalidField(
        v1::ERROR_REASON_DATA_TYPE_MISMATCH, "copy.data_type",
        absl::StrCat("the existing output has another type than asked for: ",
                     std::string(Name(existing->dtype)), ", not ", std::string(Name(dtype))));
  }
  return ChooseOutput(dtype, shape, existing);
}

absl::StatusOr<Plan> PlanCopy(const v1::Copy& copy, Inputs inputs, const Input& existing) {
  ProgramBuilder builder;
  auto argument = ToArgument(builder, copy.input(), inputs[0], 0, "copy.input");
  if (!argument.ok()) return argument.status();
  if (copy.move()) {
    if (!inputs[0])
      return InvalidField(v1::ERROR_REASON_INVALID_FIELD, "copy.input",
                          "only an array can be moved");
    return PlanMove(copy, *inputs[0], existing);
  }
  auto data_type = ReadDataType(copy.data_type(), "copy.data_type");
  if (!data_type.ok()) return data_type.status();
  auto value = ToValue(builder, *argument, "copy.input");
  if (!value.ok()) return value.status();
  Shape shape;
  if (inputs[0]) {
    shape = inputs[0]->shape;
    // np.copyto: a smaller input fills an existing output.
    if (existing) {
      auto common = BroadcastShapes({shape, existing->shape}, "copy.input");
      if (!common.ok()) return common.status();
      shape = *common;
    }
  } else if (existing) {
    shape = existing->shape;
  }
  auto output =
      CopyTarget(data_type->value_or(value->dtype), data_type->has_value(), shape, existing);
  if (!output.ok()) return output.status();
  if (inputs[0] && inputs[0]->shape == output->shape && IsPlainCopy(*inputs[0], *output)) {
    return CopyBytesPlan(*inputs[0], *output);
  }
  return PlanLoop(builder, *value, inputs, *output, "copy");
}

bool CopyKey(const OperationView& operation, const TenantId&, KeyWriter& key) {
  if (operation->copy().move()) return false;
  key.AddOperand(operation->copy().input());
  key.Add(operation->copy().data_type());
  return true;
}

}  // namespace

const OperationKind kCopyKind = {
    .name = "copy",
    .detail = [](const v1::Operation& o) -> std::string {
      return o.copy().move() ? "move" : "copy";
    },
    .operands = Reads<&v1::Operation::copy, &v1::Copy::input>,
    .plan = PlanBy<&v1::Operation::copy, PlanCopy>,
    .rules = {OneResult, CopyKey, BatchElementwise, DivideElementwise},
};

}  // namespace stride::ops
