#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/base/error.h"
#include "server/ops/operation_kind.h"
#include "server/ops/program_plan.h"

namespace stride::ops {
namespace {

absl::Status Wrong(const std::string& field, std::string_view text) {
  return InvalidField(v1::ERROR_REASON_INVALID_FIELD, field, text);
}

// float32[2,3]
std::string KindOf(const ArrayInfo& array) {
  return absl::StrCat(std::string(Name(array.dtype)), "[", absl::StrJoin(array.shape, ","), "]");
}

bool IsAlike(const ArrayInfo& one, const ArrayInfo& other) {
  return one.dtype == other.dtype && one.shape == other.shape;
}

absl::StatusOr<ProgramPlan> PlanBody(const v1::Body& body, const std::string& field,
                                     const std::vector<ArrayInfo>& inputs,
                                     const FunctionTable* functions) {
  if (static_cast<size_t>(body.inputs_size()) != inputs.size()) {
    return InvalidField(
        v1::ERROR_REASON_ARGUMENT_COUNT, field + ".inputs",
        absl::StrCat("the body gets ", inputs.size(), " arrays, not ", body.inputs_size()));
  }
  v1::Program program;
  *program.mutable_operations() = body.operations();
  for (uint64_t handle : body.inputs()) program.add_inputs()->set_handle(handle);
  *program.mutable_outputs() = body.outputs();
  auto plan = PlanProgram(program, inputs, functions);
  if (!plan.ok()) return PrefixField(plan.status(), field + ".");
  return plan;
}

absl::Status CheckNumResults(const v1::Operation& operation, size_t count) {
  if (static_cast<size_t>(operation.outputs_size()) == count) return absl::OkStatus();
  return InvalidField(v1::ERROR_REASON_ARGUMENT_COUNT, "outputs",
                      absl::StrCat("the operation has ", count, " results; outputs has ",
                                   operation.outputs_size()));
}

// An array without axes, of those types.
absl::Status CheckScalar(const Input& input, bool integers, const std::string& field) {
  const bool is_bool = input.has_value() && input->dtype == DType::kBool;
  const bool fits = is_bool || (integers && input.has_value() && IsInteger(input->dtype));
  if (fits && input->shape.empty()) return absl::OkStatus();
  return Wrong(
      field, absl::StrCat(integers ? "a bool or an integer" : "a bool", " array without axes, not ",
                          input.has_value() ? KindOf(*input) : "a scalar"));
}

absl::Status PlanLoop(const v1::Loop& loop, absl::Span<const Input> inputs,
                      const FunctionTable* functions, ProgramStep* step) {
  const int num_constants = loop.constants_size(), num_carried = loop.carried_size();
  const int num_scanned = loop.scanned_size();
  const std::string by_count = "only a loop with `count` has them";
  if (loop.has_condition()) {
    if (num_scanned > 0) return Wrong("loop.scanned", by_count);
    absl::Status checked = CheckScalar(inputs.back(), /*integers=*/false, "loop.condition");
    if (!checked.ok()) return checked;
  }
  std::vector<ArrayInfo> given;
  for (int i = 0; i < num_constants + num_carried + num_scanned; ++i) {
    const Input& input = inputs[i];
    if (!input.has_value()) {
      return Wrong(OperationView(step->operation).OperandPath(i),
                   "a body takes arrays; a number is an array without axes");
    }
    if (i < num_constants) {
      given.push_back(*input);
      continue;
    }
    std::vector<int64_t> shape = input->shape;
    if (i >= num_constants + num_carried) {
      if (shape.empty() || shape[0] != loop.count()) {
        return Wrong(absl::StrCat("loop.scanned[", i - num_constants - num_carried, "]"),
                     absl::StrCat("its first axis has an element for each of the ", loop.count(),
                                  " trips, not ", KindOf(*input)));
      }
      shape.erase(shape.begin());
    }
    given.push_back(Contiguous(input->dtype, std::move(shape)));
  }
  auto body = PlanBody(loop.body(), "loop.body", given, functions);
  if (!body.ok()) return body.status();
  const size_t first = loop.has_condition() ? 1 : 0;
  if (body->outputs.size() < first + num_carried) {
    return InvalidField(
        v1::ERROR_REASON_ARGUMENT_COUNT, "loop.body.outputs",
        absl::StrCat("at least ", first + num_carried,
                     " for the condition and the carried arrays, not ", body->outputs.size()));
  }
  if (loop.has_condition()) {
    absl::Status checked = CheckScalar(body->outputs[0], false, "loop.body.outputs[0]");
    if (!checked.ok()) return checked;
  }
  for (size_t j = first; j < body->outputs.size(); ++j) {
    const ArrayInfo& out = body->outputs[j];
    const std::string field = absl::StrCat("loop.body.outputs[", j, "]");
    if (j < first + num_carried) {
      const ArrayInfo& in = given[num_constants + j - first];
      if (!IsAlike(in, out)) {
        return Wrong(field, absl::StrCat("carried[", j - first, "] is ", KindOf(in),
                                         " before a trip and ", KindOf(out), " after it"));
      }
      step->results.push_back(in);
      continue;
    }
    if (loop.has_condition()) return Wrong(field, absl::StrCat("a stacked array; ", by_count));
    std::vector<int64_t> shape = out.shape;
    shape.insert(shape.begin(), loop.count());
    step->results.push_back(Contiguous(out.dtype, std::move(shape)));
  }
  step->bodies.push_back(std::make_shared<ProgramPlan>(*std::move(body)));
  return absl::OkStatus();
}

absl::Status PlanBranch(const v1::Branch& branch, absl::Span<const Input> inputs,
                        const FunctionTable* functions, ProgramStep* step) {
  absl::Status checked = CheckScalar(inputs[0], /*integers=*/true, "branch.index");
  if (!checked.ok()) return checked;
  std::vector<ArrayInfo> given;
  for (size_t i = 1; i < inputs.size(); ++i) {
    if (!inputs[i].has_value()) {
      return Wrong(absl::StrCat("branch.inputs[", i - 1, "]"),
                   "a body takes arrays; a number is an array without axes");
    }
    given.push_back(*inputs[i]);
  }
  for (int k = 0; k < branch.bodies_size(); ++k) {
    const std::string field = absl::StrCat("branch.bodies[", k, "]");
    auto body = PlanBody(branch.bodies(k), field, given, functions);
    if (!body.ok()) return body.status();
    if (k == 0) {
      for (const ArrayInfo& out : body->outputs)
        step->results.push_back(Contiguous(out.dtype, out.shape));
    }
    if (body->outputs.size() != step->results.size()) {
      return InvalidField(v1::ERROR_REASON_ARGUMENT_COUNT, field + ".outputs",
                          absl::StrCat("the first body has ", step->results.size(), ", this one ",
                                       body->outputs.size()));
    }
    for (size_t j = 0; j < body->outputs.size(); ++j) {
      if (IsAlike(body->outputs[j], step->results[j])) continue;
      return Wrong(absl::StrCat(field, ".outputs[", j, "]"),
                   absl::StrCat("the first body's is ", KindOf(step->results[j]), ", this one's ",
                                KindOf(body->outputs[j])));
    }
    step->bodies.push_back(std::make_shared<ProgramPlan>(*std::move(body)));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status PlanBodies(absl::Span<const Input> inputs, absl::Span<const Input> existing,
                        const FunctionTable* functions, ProgramStep* step) {
  for (size_t j = 0; j < existing.size(); ++j) {
    if (!existing[j].has_value()) continue;
    return Wrong(absl::StrCat("outputs[", j, "].existing"),
                 "a loop or a branch makes new arrays; copy from them");
  }
  const v1::Operation& operation = step->operation;
  absl::Status planned = operation.has_loop()
                             ? PlanLoop(operation.loop(), inputs, functions, step)
                             : PlanBranch(operation.branch(), inputs, functions, step);
  if (!planned.ok()) return planned;
  return CheckNumResults(operation, step->results.size());
}

namespace {

// Plans what only a program has.
absl::StatusOr<Plan> PlanWithinProgram(const v1::Operation& operation, Inputs,
                                       absl::Span<const Input>, const FunctionTable*) {
  const std::string name = ops::KindOf(operation).name;
  return NotImplemented(name, absl::StrCat("a ", name,
                                           " runs within a program alone: CreateProgram, then a "
                                           "ProgramCall"));
}

// tenants/t/programs/p -> p
std::string ProgramLabel(const v1::Operation& operation) {
  const std::string& name = operation.program_call().program();
  return name.substr(name.rfind('/') + 1);
}

}  // namespace

const OperationKind kProgramCallKind = {
    .name = "program_call",
    .label = "program ",
    .detail = ProgramLabel,
    .operands = [](const v1::Operation& o,
                   OperandList& list) { list.AddEach(o.program_call().inputs()); },
    .plan = [](const v1::Operation&, Inputs, absl::Span<const Input>,
               const FunctionTable*) -> absl::StatusOr<Plan> {
      return NotImplemented("program_call",
                            "a call of a program is not implemented here: its operations are many");
    },
    .rules = {ListedResults, NoKey, NoBatching, Undivided},
    .lists = Bounded<&v1::Operation::program_call, kMaxListedInputs, &v1::ProgramCall::inputs_size>,
};

const OperationKind kLoopKind = {
    .name = "loop",
    .operands =
        [](const v1::Operation& o, OperandList& list) {
          list.AddEach(o.loop().constants());
          list.AddEach(o.loop().carried());
          list.AddEach(o.loop().scanned());
          if (o.loop().has_condition()) list.Add(o.loop().condition());
        },
    .plan = PlanWithinProgram,
    .rules = {ListedResults, NoKey, NoBatching, Undivided},
    .lists = Bounded<&v1::Operation::loop, kMaxListedInputs, &v1::Loop::constants_size,
                     &v1::Loop::carried_size, &v1::Loop::scanned_size>,
};

const OperationKind kBranchKind = {
    .name = "branch",
    .operands =
        [](const v1::Operation& o, OperandList& list) {
          list.Add(o.branch().index());
          list.AddEach(o.branch().inputs());
        },
    .plan = PlanWithinProgram,
    .rules = {ListedResults, NoKey, NoBatching, Undivided},
    .lists = Bounded<&v1::Operation::branch, kMaxListedInputs, &v1::Branch::inputs_size,
                     &v1::Branch::bodies_size>,
};

}  // namespace stride::ops
