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

// The handles so far.
struct Known {
  std::set<uint64_t> inputs, made;
  bool Has(uint64_t handle) const { return inputs.count(handle) > 0 || made.count(handle) > 0; }
};

absl::Status CheckOperand(const v1::Operand& operand, absl::FunctionRef<std::string()> field,
                          const Known& known) {
  switch (operand.source_case()) {
    case v1::Operand::kScalar:
      return absl::OkStatus();
    case v1::Operand::kHandle:
      if (known.Has(operand.handle())) return absl::OkStatus();
      return Wrong(absl::StrCat(field(), ".handle"),
                   absl::StrCat("neither an input of the program nor made by an operation before: ",
                                operand.handle()));
    default:
      return Wrong(field(), "an operand of a program is a handle of its own, or a scalar");
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
             : Wrong(field, "a program writes in place only arrays that it made");
}

absl::Status CheckCount(const std::string& field, int count, int least, int most) {
  if (count >= least && count <= most) return absl::OkStatus();
  return InvalidField(v1::ERROR_REASON_SIZE_LIMIT, field,
                      absl::StrCat("from ", least, " to ", most, ", not ", count));
}

absl::Status CheckBodies(const v1::Operation& operation, const std::string& prefix, int depth);

// `depth`: how many bodies it lies in.
absl::Status CheckOperation(const v1::Operation& operation, const std::string& prefix, int depth,
                            Known* known) {
  if (operation.has_copy() && operation.copy().move())
    return NotImplemented(
        "copy.move", "a move within a program is not implemented: a program runs on one device");
  if (!operation.device().empty() || operation.priority() != 0)
    return Wrong(absl::StrCat(prefix, "device"), "the call sets device and priority");
  if (depth > 0 && operation.has_program_call()) {
    return NotImplemented("program_call in a body",
                          absl::StrCat("a call of a program within a loop or a branch is not "
                                       "implemented; put its operations there: ",
                                       prefix, "program_call"));
  }
  absl::Status bodies = CheckBodies(operation, prefix, depth);
  if (!bodies.ok()) return bodies;
  const OperationView view(operation);
  for (size_t i = 0; i < view.operands().size(); ++i) {
    const auto field = [&] { return prefix + view.OperandPath(i); };
    absl::Status status = CheckOperand(*view.operands()[i], field, *known);
    if (!status.ok()) return status;
  }
  for (size_t j = 0; j < view.outputs().size(); ++j) {
    const v1::Output& output = *view.outputs()[j];
    const std::string field = prefix + view.OutputPath(j);
    if (output.has_sharding()) {
      return NotImplemented(
          "output.sharding",
          absl::StrCat("not implemented within a program, which runs on one device: ", field,
                       ".sharding"));
    }
    absl::Status status = CheckOutput(output, field, known);
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

// Outputs, of what the operations have made.
absl::Status CheckOutputs(const google::protobuf::RepeatedField<uint64_t>& outputs,
                          const std::string& prefix, const Known& known) {
  for (int i = 0; i < outputs.size(); ++i) {
    if (known.made.count(outputs[i]) > 0) continue;
    return Wrong(absl::StrCat(prefix, "outputs[", i, "]"),
                 absl::StrCat("no operation makes it: ", outputs[i]));
  }
  const std::set<uint64_t> distinct(outputs.begin(), outputs.end());
  if (distinct.size() != static_cast<size_t>(outputs.size()))
    return Wrong(prefix + "outputs", "a result is returned once");
  return absl::OkStatus();
}

absl::Status CheckBody(const v1::Body& body, const std::string& prefix, int depth) {
  absl::Status counts =
      CheckCount(prefix + "operations", body.operations_size(), 1, kMaxProgramOperations);
  counts.Update(CheckCount(prefix + "inputs", body.inputs_size(), 0, kMaxInputs));
  counts.Update(CheckCount(prefix + "outputs", body.outputs_size(), 1, kMaxOutputs));
  if (!counts.ok()) return counts;
  Known known;
  for (int i = 0; i < body.inputs_size(); ++i) {
    if (body.inputs(i) == 0 || !known.inputs.insert(body.inputs(i)).second) {
      return Wrong(absl::StrCat(prefix, "inputs[", i, "]"),
                   "an input's handle is not 0, and no other input's");
    }
  }
  for (int i = 0; i < body.operations_size(); ++i) {
    absl::Status status = CheckOperation(
        body.operations(i), absl::StrCat(prefix, "operations[", i, "]."), depth, &known);
    if (!status.ok()) return status;
  }
  return CheckOutputs(body.outputs(), prefix, known);
}

absl::Status CheckBodies(const v1::Operation& operation, const std::string& prefix, int depth) {
  if (!operation.has_loop() && !operation.has_branch()) return absl::OkStatus();
  if (depth >= kMaxBodyDepth) {
    return InvalidField(
        v1::ERROR_REASON_SIZE_LIMIT, prefix + "loop",
        absl::StrCat("bodies lie within each other at most ", kMaxBodyDepth, " deep"));
  }
  if (operation.has_loop()) {
    const v1::Loop& loop = operation.loop();
    if (loop.trips_case() == v1::Loop::TRIPS_NOT_SET)
      return Wrong(prefix + "loop.trips", "a loop has a count or a condition");
    if (loop.count() < 0) {
      return Wrong(prefix + "loop.count",
                   absl::StrCat("how many trips there are, not ", loop.count()));
    }
    return CheckBody(loop.body(), prefix + "loop.body.", depth + 1);
  }
  const v1::Branch& branch = operation.branch();
  absl::Status status =
      CheckCount(prefix + "branch.bodies", branch.bodies_size(), 1, kMaxProgramOperations);
  for (int k = 0; status.ok() && k < branch.bodies_size(); ++k) {
    status =
        CheckBody(branch.bodies(k), absl::StrCat(prefix, "branch.bodies[", k, "]."), depth + 1);
  }
  return status;
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
  if (const int all = NumOperations(program); all > kMaxNestedOperations) {
    return InvalidField(v1::ERROR_REASON_SIZE_LIMIT, "operations",
                        absl::StrCat("at most ", kMaxNestedOperations,
                                     " with those of loops and branches, not ", all));
  }
  for (int i = 0; i < program.operations_size(); ++i) {
    absl::Status status =
        CheckOperation(program.operations(i), absl::StrCat("operations[", i, "]."), 0, &known);
    if (!status.ok()) return status;
  }
  if (program.has_batching()) {
    const v1::Batching& batching = program.batching();
    if (batching.inputs_size() != program.inputs_size())
      return Wrong("batching.inputs", "one for each input of the program");
    if (batching.outputs_size() != 0 && batching.outputs_size() != program.outputs_size())
      return Wrong("batching.outputs", "one for each output of the program, or none");
  }
  return CheckOutputs(program.outputs(), "", known);
}

void ForEachOperation(const v1::Operation& operation,
                      absl::FunctionRef<void(const v1::Operation&)> visit) {
  visit(operation);
  for (const v1::Operation& one : operation.loop().body().operations())
    ForEachOperation(one, visit);
  for (const v1::Body& body : operation.branch().bodies()) {
    for (const v1::Operation& one : body.operations()) ForEachOperation(one, visit);
  }
}

int NumOperations(const v1::Program& program) {
  int count = 0;
  for (const v1::Operation& operation : program.operations())
    ForEachOperation(operation, [&](const v1::Operation&) { ++count; });
  return count;
}

}  // namespace stride::ops
