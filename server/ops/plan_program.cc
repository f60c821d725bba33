#include "server/ops/program_plan.h"

#include <map>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/base/error.h"
#include "server/ops/batching.h"
#include "server/ops/fusion.h"

namespace stride::ops {
namespace {

uint64_t HandleOf(const v1::Operand& operand) {
  return operand.source_case() == v1::Operand::kHandle ? operand.handle() : 0;
}

absl::StatusOr<ProgramStep> PlanStep(const v1::Operation& operation,
                                     std::map<uint64_t, ArrayInfo>* known,
                                     const FunctionTable* functions) {
  ProgramStep step;
  step.operation = operation;
  std::vector<Input> inputs, existing;
  for (const v1::Operand* operand : OperandsOf(operation)) {
    step.inputs.push_back(HandleOf(*operand));
    inputs.push_back(step.inputs.back() == 0 ? Input() : Input(known->at(step.inputs.back())));
  }
  for (const v1::Output* output : OutputsOf(operation)) {
    step.outputs.push_back(output->handle());
    step.existing.push_back(output->existing());
    existing.push_back(step.existing.back() ? Input(known->at(step.outputs.back())) : Input());
  }
  if (operation.has_loop() || operation.has_branch()) {
    absl::Status planned = PlanBodies(inputs, existing, functions, &step);
    if (!planned.ok()) return planned;
    for (size_t j = 0; j < step.outputs.size(); ++j) (*known)[step.outputs[j]] = step.results[j];
    return step;
  }
  auto plan = PlanOperation(operation, inputs, existing, functions);
  if (!plan.ok()) return plan.status();
  for (size_t j = 0; j < step.outputs.size(); ++j) (*known)[step.outputs[j]] = plan->outputs[j];
  if (plan->converted_inputs.empty() && !plan->through_new_output) step.plan = *std::move(plan);
  return step;
}

}  // namespace

absl::StatusOr<ProgramPlan> PlanProgram(const v1::Program& given,
                                        absl::Span<const ArrayInfo> inputs,
                                        const FunctionTable* functions) {
  if (given.has_batching() && inputs.size() == static_cast<size_t>(given.inputs_size())) {
    auto batched = BatchProgram(given, inputs, functions);
    if (!batched.ok()) return batched.status();
    return PlanProgram(*batched, inputs, functions);
  }
  const v1::Program& program = given;
  if (inputs.size() != static_cast<size_t>(program.inputs_size())) {
    return InvalidField(
        v1::ERROR_REASON_ARGUMENT_COUNT, "inputs",
        absl::StrCat("the program has ", program.inputs_size(), " inputs, not ", inputs.size()));
  }
  std::map<uint64_t, ArrayInfo> known;
  for (int i = 0; i < program.inputs_size(); ++i) known[program.inputs(i).handle()] = inputs[i];
  ProgramPlan plan;
  plan.inputs.assign(inputs.begin(), inputs.end());
  for (const v1::ProgramInput& input : program.inputs())
    plan.input_handles.push_back(input.handle());
  for (int i = 0; i < program.operations_size(); ++i) {
    auto step = PlanStep(program.operations(i), &known, functions);
    if (!step.ok()) return PrefixField(step.status(), absl::StrCat("operations[", i, "]."));
    plan.steps.push_back(*std::move(step));
  }
  for (uint64_t handle : program.outputs()) {
    plan.outputs.push_back(known.at(handle));
    plan.output_handles.push_back(handle);
  }
  const std::set<uint64_t> results(program.outputs().begin(), program.outputs().end());
  FuseSteps(known, results, functions, &plan.steps);
  return plan;
}

}  // namespace stride::ops
