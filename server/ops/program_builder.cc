#include "server/ops/program_builder.h"

#include <algorithm>
#include <utility>

namespace stride::ops {

Value ProgramBuilder::Add(wire::Instruction instruction, DType dtype) {
  instruction.set_dtype(static_cast<int>(dtype));
  uint32_t next = static_cast<uint32_t>(program_.instructions_size());
  auto [known, is_new] = known_.emplace(instruction.SerializeAsString(), next);
  if (is_new) {
    num_operations_ += instruction.kind() == wire::Instruction::KIND_OP ||
                       instruction.kind() == wire::Instruction::KIND_CALL;
    *program_.add_instructions() = std::move(instruction);
  }
  return Value{known->second, dtype};
}

Value ProgramBuilder::Input(uint32_t slot, DType dtype) {
  auto found = std::find(slots_.begin(), slots_.end(), slot);
  uint32_t index = static_cast<uint32_t>(found - slots_.begin());
  if (found == slots_.end()) {
    slots_.push_back(slot);
    input_dtypes_.push_back(dtype);
  }
  wire::Instruction instruction;
  instruction.set_kind(wire::Instruction::KIND_INPUT);
  instruction.set_index(index);
  return Add(std::move(instruction), dtype);
}

Value ProgramBuilder::Index() {
  uses_index_ = true;
  wire::Instruction instruction;
  instruction.set_kind(wire::Instruction::KIND_INDEX);
  return Add(std::move(instruction), DType::kInt64);
}

Value ProgramBuilder::Constant(const wire::ScalarValue& scalar) {
  if (literal_constants_) {
    wire::Instruction literal;
    literal.set_kind(wire::Instruction::KIND_LITERAL);
    literal.set_literal(scalar.value());
    return Add(std::move(literal), static_cast<DType>(scalar.dtype()));
  }
  auto [known, is_new] =
      scalar_index_.emplace(scalar.SerializeAsString(), static_cast<uint32_t>(scalars_.size()));
  if (is_new) scalars_.push_back(scalar);
  wire::Instruction instruction;
  instruction.set_kind(wire::Instruction::KIND_SCALAR);
  instruction.set_index(known->second);
  return Add(std::move(instruction), static_cast<DType>(scalar.dtype()));
}

Value ProgramBuilder::Parameter(const wire::ScalarValue& scalar) {
  wire::Instruction instruction;
  instruction.set_kind(wire::Instruction::KIND_SCALAR);
  instruction.set_index(static_cast<uint32_t>(scalars_.size()));
  scalars_.push_back(scalar);
  return Add(std::move(instruction), static_cast<DType>(scalar.dtype()));
}

Value ProgramBuilder::Op(std::string_view name, absl::Span<const Value> arguments, DType result) {
  wire::Instruction instruction;
  instruction.set_kind(wire::Instruction::KIND_OP);
  instruction.set_op(std::string(name));
  for (Value argument : arguments) instruction.add_arguments(argument.id);
  return Add(std::move(instruction), result);
}

Value ProgramBuilder::Cast(Value value, DType dtype) {
  if (value.dtype == dtype) return value;
  wire::Instruction instruction;
  instruction.set_kind(wire::Instruction::KIND_CAST);
  instruction.add_arguments(value.id);
  return Add(std::move(instruction), dtype);
}

wire::Instruction ProgramBuilder::CallOf(const wire::DeviceFunction& function,
                                         absl::Span<const Value> arguments) {
  int index = 0;
  while (index < program_.functions_size() &&
         (program_.functions(index).source() != function.source() ||
          program_.functions(index).entry() != function.entry()))
    ++index;
  if (index == program_.functions_size()) *program_.add_functions() = function;
  wire::Instruction instruction;
  instruction.set_kind(wire::Instruction::KIND_CALL);
  instruction.set_index(static_cast<uint32_t>(index));
  for (Value argument : arguments) instruction.add_arguments(argument.id);
  return instruction;
}

Value ProgramBuilder::Call(const wire::DeviceFunction& function, absl::Span<const Value> arguments,
                           DType result) {
  return Add(CallOf(function, arguments), result);
}

std::vector<Value> ProgramBuilder::CallSeveral(const wire::DeviceFunction& function,
                                               absl::Span<const Value> arguments,
                                               absl::Span<const DType> results) {
  wire::Instruction instruction = CallOf(function, arguments);
  for (DType result : results) instruction.add_result_dtypes(static_cast<int>(result));
  std::vector<Value> values;
  for (size_t i = 0; i < results.size(); ++i) {
    instruction.set_result(static_cast<uint32_t>(i));
    values.push_back(Add(instruction, results[i]));
  }
  return values;
}

wire::ScalarProgram ProgramBuilder::Finish(absl::Span<const Value> results) const {
  wire::ScalarProgram program = program_;
  for (Value result : results) program.add_results(result.id);
  return program;
}

}  // namespace stride::ops
