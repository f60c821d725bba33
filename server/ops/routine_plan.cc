#include "server/ops/routine_plan.h"

#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/base/error.h"
#include "server/ops/elementwise.h"

namespace stride::ops {
namespace {

bool Fits31Bits(int64_t value) { return value <= std::numeric_limits<int32_t>::max(); }

int64_t Product(const std::vector<int64_t>& extents) { return Loop{extents, {}}.count(); }

}  // namespace

Plan MakeRoutinePlan(RoutineSpec spec) {
  Loop loop{std::move(spec.extents), {}};
  for (const RoutineOperand& operand : spec.operands) loop.strides.push_back(operand.strides);
  loop = Collapse(std::move(loop), spec.order);

  Plan plan;
  plan.outputs = std::move(spec.outputs);
  auto* code = plan.code.emplace().mutable_routine();
  auto* launch = plan.task.mutable_routine();
  code->set_routine(spec.routine);
  launch->set_routine(spec.routine);
  code->set_rank(static_cast<uint32_t>(loop.extents.size()));
  launch->mutable_extents()->Assign(loop.extents.begin(), loop.extents.end());
  launch->set_num_inputs(static_cast<uint32_t>(spec.num_inputs));
  bool narrow = Fits31Bits(loop.count());
  for (size_t i = 0; i < spec.operands.size(); ++i) {
    const RoutineOperand& operand = spec.operands[i];
    auto* declared = code->add_operands();
    declared->set_dtype(static_cast<int>(operand.array.dtype));
    declared->set_own_rank(static_cast<uint32_t>(operand.own_extents.size()));
    auto* placed = launch->add_operands();
    *placed->mutable_operand() = MakeOperand(operand.slot, operand.array, loop.strides[i]);
    placed->mutable_own_extents()->Assign(operand.own_extents.begin(), operand.own_extents.end());
    placed->mutable_own_strides()->Assign(operand.own_strides.begin(), operand.own_strides.end());
    narrow = narrow && Fits31Bits(Product(operand.own_extents));
    plan.bytes += static_cast<double>(operand.array.size_bytes());
    plan.flops += static_cast<double>(operand.array.num_elements());
  }
  code->set_index_32bit(narrow);
  for (auto& program : spec.programs) *code->add_programs() = std::move(program);
  for (int64_t option : spec.options) {
    code->add_options(option);
    launch->add_options(option);
  }
  code->set_num_scalars(static_cast<uint32_t>(spec.scalars.size()));
  for (auto& scalar : spec.scalars) *launch->add_scalars() = std::move(scalar);
  return plan;
}

wire::RoutineCode::ProgramCode MakeProgram(const ProgramBuilder& builder, Value result) {
  wire::RoutineCode::ProgramCode code;
  *code.mutable_program() = builder.Finish({result});
  for (DType dtype : builder.input_dtypes()) code.add_input_dtypes(static_cast<int>(dtype));
  code.set_output_dtype(static_cast<int>(result.dtype));
  return code;
}

wire::RoutineCode::ProgramCode CastProgram(absl::Span<const DType> types) {
  ProgramBuilder builder;
  Value value = builder.Input(0, types[0]);
  for (DType type : types.subspan(1)) value = builder.Cast(value, type);
  return MakeProgram(builder, value);
}

absl::StatusOr<ArrayInfo> NeedArray(const Input& input, std::string_view field) {
  if (input) return *input;
  return InvalidField(v1::ERROR_REASON_INVALID_FIELD, field,
                      "an array is needed here; a single number is an array without axes");
}

absl::StatusOr<size_t> NormalizeAxis(int64_t axis, size_t rank, std::string_view field) {
  const int64_t count = static_cast<int64_t>(rank);
  if (axis >= -count && axis < count) return static_cast<size_t>(axis < 0 ? axis + count : axis);
  return InvalidField(
      v1::ERROR_REASON_INVALID_FIELD, field,
      absl::StrCat("the array has no such axis: ", axis, " of an array with ", rank, " axes"));
}

std::vector<int64_t> StridesWithout(const ArrayInfo& array, size_t begin, size_t end) {
  std::vector<int64_t> strides = array.strides;
  for (size_t axis = begin; axis < end; ++axis) strides[axis] = 0;
  return strides;
}

}  // namespace stride::ops
