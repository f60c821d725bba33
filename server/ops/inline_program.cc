#include "server/ops/inline_program.h"

#include <algorithm>
#include <map>

#include "absl/strings/str_cat.h"
#include "server/base/error.h"
#include "server/ops/plan.h"
#include "server/ops/program_plan.h"

namespace stride::ops {
namespace {

using Handles = std::map<uint64_t, uint64_t>;

uint64_t Renamed(const Handles& handles, uint64_t handle) {
  auto found = handles.find(handle);
  return found == handles.end() ? handle : found->second;
}

// In an operation of our own, whose operands and outputs are listed as constant.
void RenameOperands(const Handles& handles, v1::Operation* operation) {
  for (const v1::Operand* listed : OperandsOf(*operation)) {
    if (listed->source_case() != v1::Operand::kHandle) continue;
    auto* operand = const_cast<v1::Operand*>(listed);
    operand->set_handle(Renamed(handles, operand->handle()));
  }
}

uint64_t LastHandle(const v1::Program& program) {
  uint64_t last = 0;
  for (const v1::ProgramInput& input : program.inputs()) last = std::max(last, input.handle());
  for (const v1::Operation& operation : program.operations()) {
    for (const v1::Output* output : OutputsOf(operation)) last = std::max(last, output->handle());
  }
  return last;
}

class Inliner {
 public:
  explicit Inliner(const v1::Program& program) : made_(program), last_(LastHandle(program)) {
    made_.clear_operations();
  }

  void Add(const v1::Operation& operation) {
    v1::Operation* added = made_.add_operations();
    *added = operation;
    RenameOperands(names_, added);
    for (const v1::Output* listed : OutputsOf(*added)) {
      auto* output = const_cast<v1::Output*>(listed);
      output->set_handle(Renamed(names_, output->handle()));
    }
  }

  absl::Status AddCall(const v1::Operation& call, const v1::Program& callee) {
    const v1::ProgramCall& program_call = call.program_call();
    if (callee.has_batching()) {
      return NotImplemented("program_call",
                            "a call of a program with `batching` within a program is not "
                            "implemented; batch the calling program");
    }
    if (program_call.inputs_size() != callee.inputs_size()) {
      return InvalidField(v1::ERROR_REASON_ARGUMENT_COUNT, "program_call.inputs",
                          absl::StrCat("the program has ", callee.inputs_size(), " inputs, not ",
                                       program_call.inputs_size()));
    }
    if (call.outputs_size() != callee.outputs_size()) {
      return InvalidField(v1::ERROR_REASON_ARGUMENT_COUNT, "outputs",
                          absl::StrCat("the program has ", callee.outputs_size(),
                                       " results; outputs given: ", call.outputs_size()));
    }
    Handles inner;
    for (int i = 0; i < callee.inputs_size(); ++i) {
      const v1::Operand& operand = program_call.inputs(i);
      if (operand.source_case() != v1::Operand::kHandle) {
        return InvalidField(v1::ERROR_REASON_INVALID_FIELD,
                            absl::StrCat("program_call.inputs[", i, "]"),
                            "a program takes arrays; a number is an array without axes");
      }
      inner[callee.inputs(i).handle()] = Renamed(names_, operand.handle());
    }
    for (const v1::Operation& operation : callee.operations()) {
      v1::Operation* added = made_.add_operations();
      *added = operation;
      RenameOperands(inner, added);
      for (const v1::Output* listed : OutputsOf(*added)) {
        auto* output = const_cast<v1::Output*>(listed);
        if (!output->existing()) inner[output->handle()] = ++last_;
        output->set_handle(Renamed(inner, output->handle()));
      }
    }
    for (int j = 0; j < call.outputs_size(); ++j) {
      const uint64_t result = Renamed(inner, callee.outputs(j));
      if (!call.outputs(j).existing()) {
        names_[call.outputs(j).handle()] = result;
        continue;
      }
      v1::Operation* copy = made_.add_operations();
      copy->mutable_copy()->mutable_input()->set_handle(result);
      *copy->add_outputs() = call.outputs(j);
      copy->mutable_outputs(0)->set_handle(Renamed(names_, call.outputs(j).handle()));
    }
    return absl::OkStatus();
  }

  v1::Program Take() {
    for (uint64_t& output : *made_.mutable_outputs()) output = Renamed(names_, output);
    return std::move(made_);
  }
  int num_operations() const { return made_.operations_size(); }

 private:
  v1::Program made_;
  uint64_t last_;
  Handles names_;  // results of calls, by the program's handle
};

}  // namespace

bool CallsPrograms(const v1::Program& program) {
  return std::any_of(program.operations().begin(), program.operations().end(),
                     [](const v1::Operation& operation) { return operation.has_program_call(); });
}

absl::StatusOr<v1::Program> InlinePrograms(
    const v1::Program& program,
    absl::FunctionRef<absl::StatusOr<const v1::Program*>(const std::string&)> find) {
  Inliner inliner(program);
  for (int i = 0; i < program.operations_size(); ++i) {
    const v1::Operation& operation = program.operations(i);
    const std::string prefix = absl::StrCat("operations[", i, "].");
    if (!operation.has_program_call()) {
      inliner.Add(operation);
      continue;
    }
    auto callee = find(operation.program_call().program());
    if (!callee.ok()) return PrefixField(callee.status(), prefix);
    absl::Status added = inliner.AddCall(operation, **callee);
    if (!added.ok()) return PrefixField(added, prefix);
    if (inliner.num_operations() > kMaxProgramOperations) break;  // refused below
  }
  v1::Program whole = inliner.Take();
  if (absl::Status status = CheckProgram(whole); !status.ok()) return status;
  return whole;
}

}  // namespace stride::ops
