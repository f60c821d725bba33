#include "server/ops/elementwise.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "server/base/error.h"
#include "server/ops/collapse.h"
#include "server/ops/promotion.h"

namespace stride::ops {
namespace {

// What a device's launch block holds (server/worker/codegen/launch_abi.h).
constexpr size_t kMaxOperands = 64;
constexpr size_t kMaxScalars = 256;
// Code beyond this takes compilers minutes.
constexpr int kMaxInstructions = 2048;

absl::Status CheckProgramSize(const ProgramBuilder& builder, std::string_view field) {
  if (builder.slots().size() + 1 <= kMaxOperands && builder.scalars().size() <= kMaxScalars &&
      builder.num_instructions() <= kMaxInstructions) {
    return absl::OkStatus();
  }
  return InvalidField(
      v1::ERROR_REASON_SIZE_LIMIT, field,
      absl::StrCat("the operation is too large for one kernel; split it. Limits: ",
                   kMaxOperands - 1, " input arrays, ", kMaxScalars, " constants, ",
                   kMaxInstructions, " instructions; it has ", builder.slots().size(), ", ",
                   builder.scalars().size(), " and ", builder.num_instructions()));
}

}  // namespace

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

absl::StatusOr<ArrayInfo> ChooseOutput(DType dtype, const Shape& shape, const Input& existing) {
  if (!existing) {
    auto status = CheckShape(shape, dtype, "outputs[0]");
    if (!status.ok()) return status;
    return Contiguous(dtype, shape);
  }
  if (existing->shape != shape) {
    return InvalidField(v1::ERROR_REASON_SHAPE_MISMATCH, "outputs[0]",
                        absl::StrCat("the existing output has another shape than the result: ",
                                     ToString(existing->shape), ", the result ", ToString(shape)));
  }
  if (!CanCastSameKind(dtype, existing->dtype)) {
    return InvalidField(
        v1::ERROR_REASON_DATA_TYPE_MISMATCH, "outputs[0]",
        absl::StrCat(
            "the result cannot be cast to the existing output's type without changing its kind: ",
            std::string(Name(dtype)), " to ", std::string(Name(existing->dtype))));
  }
  if (auto status = CheckWritable(*existing, "outputs[0]"); !status.ok()) return status;
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
                              const ArrayInfo& output, std::string_view field, std::string label) {
  result = builder.Cast(result, output.dtype);
  if (auto status = CheckProgramSize(builder, field); !status.ok()) return status;
  Loop loop{output.shape, {}};
  for (uint32_t slot : builder.slots())
    loop.strides.push_back(BroadcastStrides(*inputs[slot], output.shape));
  loop.strides.push_back(output.strides);
  loop = Collapse(std::move(loop), builder.uses_index() ? AxisOrder::kKeep : AxisOrder::kLocality);

  Plan plan;
  plan.outputs.push_back(output);
  auto* code = plan.code.emplace().mutable_elementwise();
  auto* launch = plan.task.mutable_elementwise();
  *code->mutable_program() = builder.Finish({result});
  for (size_t i = 0; i < builder.slots().size(); ++i) {
    const ArrayInfo& array = *inputs[builder.slots()[i]];
    code->add_input_dtypes(static_cast<int>(array.dtype));
    code->mutable_layout()->add_access(AccessOf(loop, i, ItemSize(array.dtype)));
    *launch->add_inputs() = MakeOperand(builder.slots()[i], array, loop.strides[i]);
    plan.bytes += static_cast<double>(array.size_bytes());
  }
  code->add_output_dtypes(static_cast<int>(output.dtype));
  code->mutable_layout()->add_access(
      AccessOf(loop, loop.strides.size() - 1, ItemSize(output.dtype)));
  code->mutable_layout()->set_rank(static_cast<uint32_t>(loop.extents.size()));
  code->set_index_32bit(Fits32Bits(loop));
  launch->mutable_extents()->Assign(loop.extents.begin(), loop.extents.end());
  *launch->add_outputs() =
      MakeOperand(static_cast<uint32_t>(inputs.size()), output, loop.strides.back());
  for (const wire::ScalarValue& scalar : builder.scalars()) *launch->add_scalars() = scalar;
  plan.task.set_label(std::move(label));
  plan.bytes += static_cast<double>(output.size_bytes());
  plan.flops = static_cast<double>(loop.count()) * builder.num_operations();
  return plan;
}

}  // namespace stride::ops
