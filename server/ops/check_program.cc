#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "server/base/error.h"
#include "server/ops/program_plan.h"

namespace stride::ops {
namespace {

constexpr int kMaxInputs = 256;
constexpr int kMaxOutputs = 64;

absl::Status Wrong(const std::string& field, std::string_view text) {
  return InvalidField(v1::ERROR_REASON_INVALID_FIELD, field, text);
}

// What handles stand for so far.
struct Known {
  std::set<uint64_t> inputs, made;
  bool Has(uint64_t handle) const { return inputs.count(handle) > 0 || made.count(handle) > 0; }
};

absl::Status CheckOperand(const v1::Operand& operand, const std::string& field,
                          const Known& known) {
  switch (operand.source_case()) {
    case v1::Operand::kScalar:
      return absl::OkStatus();
    case v1::Operand::kHandle:
      if (known.Has(operand.handle())) return absl::OkStatus();
      return Wrong(absl::StrCat(field, ".handle"),
                   absl::StrCat("neither an input of the program nor made by an operation before: ",
                                operand.handle()));
    default:
      return Wrong(field, "an operand of a program is a handle of its own, or a scalar");
  }
}

absl::Status CheckOutput(const v1::Output& output, const std::string& field, Known* known) {
  if (output.target_case() != v1::Output::kHandle || output.handle() == 0)
    return Wrong(field, "an output of a program's operation is a handle of its own, not 0");
  if (!output.existing()) {
    if (known->Has(output.handle()))
      return Wrong(field, absl::StrCat("the handle is taken: ", output.handle()));
    known->made.insert(output.handle());
    return absl::OkStatus();
  }
  return known->made.count(output.handle()) > 0
             ? absl::OkStatus()
             : Wrong(field, "what a program writes in place it has made itself");
}

absl::Status CheckOperation(const v1::Operation& operation, const std::string& prefix,
                            Known* known) {
  if (operation.has_copy() && operation.copy().move())
    return NotImplemented(
        "copy.move", "a move within a program is not implemented: a program runs on one device");
  if (!operation.device().empty() || operation.priority() != 0)
    return Wrong(absl::StrCat(prefix, "device"), "device and priority are the call's to tell");
  for (const OperandField& field : CollectOperands(operation)) {
    absl::Status status = CheckOperand(*field.operand, prefix + field.field, *known);
    if (!status.ok()) return status;
  }
  for (const OutputField& field : CollectOutputs(operation)) {
    if (field.output->has_sharding()) {
      return NotImplemented(
          "output.sharding",
          absl::StrCat("not implemented within a program, which runs on one device: ", prefix,
                       field.field, ".sharding"));
    }
    absl::Status status = CheckOutput(*field.output, prefix + field.field, known);
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status CheckCount(const char* field, int count, int least, int most) {
  if (count >= least && count <= most) return absl::OkStatus();
  return InvalidField(v1::ERROR_REASON_SIZE_LIMIT, field,
                      absl::StrCat("from ", least, " to ", most, ", not ", count));
}

}  // namespace

absl::Status CheckProgram(const v1::Program& program) {
  absl::Status counts =
      CheckCount("operations", program.operations_size(), 1, kMaxProgramOperations);
  counts.Update(CheckCount("inputs", program.inputs_size(), 0, kMaxInputs));
  counts.Update(CheckCount("outputs", program.outputs_size(), 1, kMaxOutputs));
  if (!counts.ok()) return counts;
  Known known;
  for (int i = 0; i < program.inputs_size(); ++i) {
    const uint64_t handle = program.inputs(i).handle();
    const std::string field = absl::StrCat("inputs[", i, "].handle");
    if (handle == 0 || !known.inputs.insert(handle).second)
      return Wrong(field, "an input's handle is not 0, and no other input's");
    if (program.inputs(i).has_spec() != program.inputs(0).has_spec()) {
      return Wrong(absl::StrCat("inputs[", i, "].spec"),
                   "either all inputs say what they are, or none");
    }
  }
  for (int i = 0; i < program.operations_size(); ++i) {
    absl::Status status =
        CheckOperation(program.operations(i), absl::StrCat("operations[", i, "]."), &known);
    if (!status.ok()) return status;
  }
  for (int i = 0; i < program.outputs_size(); ++i) {
    if (known.made.count(program.outputs(i)) > 0) continue;
    return Wrong(absl::StrCat("outputs[", i, "]"),
                 absl::StrCat("no operation makes it: ", program.outputs(i)));
  }
  if (program.has_batching()) {
    const v1::Batching& batching = program.batching();
    if (batching.inputs_size() != program.inputs_size())
      return Wrong("batching.inputs", "one for each input of the program");
    if (batching.outputs_size() != 0 && batching.outputs_size() != program.outputs_size())
      return Wrong("batching.outputs", "one for each output of the program, or none");
  }
  const std::set<uint64_t> distinct(program.outputs().begin(), program.outputs().end());
  if (distinct.size() != static_cast<size_t>(program.outputs_size()))
    return Wrong("outputs", "a result is returned once");
  return absl::OkStatus();
}

}  // namespace stride::ops
