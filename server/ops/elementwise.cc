#include "server/ops/elementwise.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "server/base/error.h"
#include "server/ops/collapse.h"
#include "server/ops/promotion.h"

namespace stride::ops {
namespace {

// The capacity of a device's launch block (server/worker/codegen/launch_abi.h).
constexpr size_t kMaxOperands = 64;
constexpr size_t kMaxScalars = 256;
// Code beyond this takes compilers minutes.
constexpr int kMaxInstructions = 2048;
constexpr int kMaxFunctions = 16;  // clients' texts

}  // namespace

absl::Status CheckProgramSize(const ProgramBuilder& builder, size_t num_outputs,
                              std::string_view field, size_t num_scalars) {
  num_scalars += builder.scalars().size();
  if (builder.num_functions() > kMaxFunctions) {
    return InvalidField(
        v1::ERROR_REASON_SIZE_LIMIT, field,
        absl::StrCat("the operation is too large for one kernel; split it. It calls ",
                     builder.num_functions(), " functions that are texts, at most ",
                     kMaxFunctions));
  }
  if (builder.slots().size() + num_outputs <= kMaxOperands && num_scalars <= kMaxScalars &&
      builder.num_instructions() <= kMaxInstructions) {
    return absl::OkStatus();
  }
  return InvalidField(
      v1::ERROR_REASON_SIZE_LIMIT, field,
      absl::StrCat("the operation is too large for one kernel; split it. Limits: ",
                   kMaxOperands - num_outputs, " input arrays, ", kMaxScalars, " constants, ",
                   kMaxInstructions, " instructions; it has ", builder.slots().size(), ", ",
                   num_scalars, " and ", builder.num_instructions()));
}

absl::StatusOr<Argument> ToArgument(ProgramBuilder& builder, const v1::Operand& operand,
                                    const Input& input, uint32_t slot, std::string_view field) {
  if (input) return Argument(builder.Input(slot, input->dtype));
  if (operand.source_case() != v1::Operand::kScalar) {
    return InvalidField(v1::ERROR_REASON_INVALID_FIELD, field, "the operand is missing");
  }
  std::string path = absl::StrCat(std::string(field), ".scalar");
  auto scalar = ReadScalar(operand.scalar(), path);
  if (!scalar.ok()) return scalar.status();
  if (!scalar->dtype) return Argument(scalar->value);
  auto encoded = EncodeScalar(scalar->value, *scalar->dtype, path);
  if (!encoded.ok()) return encoded.status();
  return Argument(builder.Constant(*encoded));
}

absl::StatusOr<ArrayInfo> ChooseOutput(DType dtype, const Shape& shape, const Input& existing,
                                       std::string_view field, Casting casting) {
  if (!existing) {
    auto status = CheckShape(shape, dtype, field);
    if (!status.ok()) return status;
    return Contiguous(dtype, shape);
  }
  if (existing->shape != shape) {
    return InvalidField(v1::ERROR_REASON_SHAPE_MISMATCH, field,
                        absl::StrCat("the existing output has another shape than the result: ",
                                     ToString(existing->shape), ", the result ", ToString(shape)));
  }
  if (!CanCast(dtype, existing->dtype, casting)) {
    return InvalidField(
        v1::ERROR_REASON_DATA_TYPE_MISMATCH, field,
        absl::StrCat("the result cannot be cast to the existing output's type",
                     casting == Casting::kSameKind ? " without changing its kind"
                                                   : " under the casting asked for",
                     ": ", std::string(Name(dtype)), " to ", std::string(Name(existing->dtype))));
  }
  if (auto status = CheckWritable(*existing, field); !status.ok()) return status;
  return *existing;
}

absl::Status CheckWritable(const ArrayInfo& array, std::string_view field) {
  for (size_t i = 0; i < array.shape.size(); ++i) {
    if (array.shape[i] > 1 && array.strides[i] == 0) {
      return InvalidField(
          v1::ERROR_REASON_INVALID_FIELD, field,
          absl::StrCat("a broadcast view cannot be written, since its elements share memory; axis ",
                       i));
    }
  }
  return absl::OkStatus();
}

wire::Operand MakeOperand(uint32_t slot, const ArrayInfo& array,
                          const std::vector<int64_t>& strides) {
  wire::Operand operand;
  operand.set_arena(slot);
  operand.set_offset(static_cast<uint64_t>(array.offset));
  operand.set_dtype(static_cast<int>(array.dtype));
  operand.mutable_strides()->Assign(strides.begin(), strides.end());
  return operand;
}

absl::StatusOr<Plan> PlanLoop(ProgramBuilder& builder, Value result, Inputs inputs,
                              const ArrayInfo& output, std::string_view field) {
  return PlanLoop(builder, absl::MakeConstSpan(&result, 1), inputs, absl::MakeConstSpan(&output, 1),
                  field);
}

absl::StatusOr<Plan> PlanLoop(ProgramBuilder& builder, absl::Span<const Value> results,
                              Inputs inputs, absl::Span<const ArrayInfo> outputs,
                              std::string_view field) {
  std::vector<Value> stored;
  for (size_t j = 0; j < results.size(); ++j)
    stored.push_back(builder.Cast(results[j], outputs[j].dtype));
  if (auto status = CheckProgramSize(builder, outputs.size(), field); !status.ok()) return status;
  auto array_of = [&](uint32_t slot) -> const ArrayInfo& {
    return slot < inputs.size() ? *inputs[slot] : outputs[slot - inputs.size()];
  };
  Loop loop{outputs[0].shape, {}};
  for (uint32_t slot : builder.slots())
    loop.strides.push_back(BroadcastStrides(array_of(slot), loop.extents));
  for (const ArrayInfo& output : outputs) loop.strides.push_back(output.strides);
  loop = Collapse(std::move(loop), builder.uses_index() ? AxisOrder::kKeep : AxisOrder::kLocality);

  Plan plan;
  plan.outputs.assign(outputs.begin(), outputs.end());
  auto* code = plan.code.emplace().mutable_elementwise();
  auto* launch = plan.task.mutable_elementwise();
  *code->mutable_program() = builder.Finish(stored);
  size_t operand = 0;
  for (uint32_t slot : builder.slots()) {
    const ArrayInfo& array = array_of(slot);
    code->add_input_dtypes(static_cast<int>(array.dtype));
    code->mutable_layout()->add_access(AccessOf(loop, operand, ItemSize(array.dtype)));
    *launch->add_inputs() = MakeOperand(slot, array, loop.strides[operand++]);
    plan.bytes += static_cast<double>(array.size_bytes());
  }
  for (size_t j = 0; j < outputs.size(); ++j) {
    code->add_output_dtypes(static_cast<int>(outputs[j].dtype));
    code->mutable_layout()->add_access(AccessOf(loop, operand, ItemSize(outputs[j].dtype)));
    *launch->add_outputs() =
        MakeOperand(static_cast<uint32_t>(inputs.size() + j), outputs[j], loop.strides[operand++]);
    plan.bytes += static_cast<double>(outputs[j].size_bytes());
  }
  code->mutable_layout()->set_rank(static_cast<uint32_t>(loop.extents.size()));
  code->set_index_32bit(Fits32Bits(loop));
  launch->mutable_extents()->Assign(loop.extents.begin(), loop.extents.end());
  for (const wire::ScalarValue& scalar : builder.scalars()) *launch->add_scalars() = scalar;
  plan.flops = static_cast<double>(loop.count()) * builder.num_operations();
  return plan;
}

}  // namespace stride::ops
