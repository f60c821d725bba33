// Operations: calls of registered programs.
#include <map>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/base/block_pool.h"
#include "server/base/error.h"
#include "server/base/steady_time.h"
#include "server/engine/operations/operation_outputs.h"
#include "server/engine/operations/operations.h"
#include "server/engine/operations/resolve_operation.h"

namespace stride::engine {

using session::Array;
using ArrayPtr = std::shared_ptr<Array>;

absl::StatusOr<Operations::Accepted> Operations::SubmitProgram(const TenantId& tenant,
                                                               const std::string& session,
                                                               const ops::OperationView& operation,
                                                               SteadyTime deadline, Extras extras) {
  auto in_transaction = [&, global = NeedsGlobal(operation.outputs(), extras)](auto function) {
    if (global) {
      GlobalTransaction transaction(*core_);
      return function(transaction);
    }
    TenantTransaction transaction(*core_, tenant);
    return function(transaction);
  };
  const std::string& program = operation->program_call().program();
  TaskList launched;
  Resolved resolved = ResolvedFor(std::move(extras), &launched);
  ProgramRequest request;
  absl::StatusOr<PlannedProgram> ready = PlannedProgram{};
  auto launch = [&](TenantTransaction& transaction) {
    absl::StatusOr<Accepted> accepted =
        ready.ok()
            ? LaunchProgram(transaction, tenant, *ready, operation.label(), deadline, resolved)
            : absl::StatusOr<Accepted>(ready.status());
    return Conclude(transaction, tenant, session, operation, std::move(accepted),
                    std::move(launched));
  };
  // Empty: a plan is to be made.
  using Result = std::optional<absl::StatusOr<Accepted>>;
  Result result = in_transaction([&](TenantTransaction& transaction) -> Result {
    absl::Status status =
        ResolveOperation(*core_, transaction, tenant, session, operation, &resolved);
    if (!status.ok() || IsSharded(resolved)) {
      absl::StatusOr<Accepted> accepted =
          status.ok() ? LaunchSharded(transaction, tenant, operation, deadline, resolved)
                      : absl::StatusOr<Accepted>(status);
      return Conclude(transaction, tenant, session, operation, std::move(accepted),
                      std::move(launched));
    }
    ready = FindProgram(transaction, tenant, operation->program_call(), resolved, &request);
    if (ready.ok() && ready->plan == nullptr) return std::nullopt;
    return launch(transaction);
  });
  if (result.has_value()) return *std::move(result);
  ready = programs_->MakePlan(request);
  return in_transaction([&](TenantTransaction& transaction) {
    if (ready.ok()) {
      programs_->Keep(transaction, tenant, program, request, *ready);
    } else {
      ready = PrefixField(ready.status(), "program_call.program.");
    }
    return launch(transaction);
  });
}

absl::StatusOr<PlannedProgram> Operations::FindProgram(TenantTransaction& transaction,
                                                       const TenantId& tenant,
                                                       const v1::ProgramCall& call,
                                                       const Resolved& resolved,
                                                       ProgramRequest* request) {
  std::vector<ArrayInfo> infos;
  for (size_t i = 0; i < resolved.inputs.size(); ++i) {
    if (resolved.inputs[i] == nullptr) {
      return InvalidField(v1::ERROR_REASON_INVALID_FIELD,
                          absl::StrCat("program_call.inputs[", i, "]"),
                          "a program takes arrays; a number is an array without axes");
    }
    infos.push_back(*resolved.inputs[i]->info);
  }
  return programs_->Find(transaction, tenant, call.program(), infos, request);
}

absl::StatusOr<Operations::Accepted> Operations::LaunchProgram(
    TenantTransaction& transaction, const TenantId& tenant, const PlannedProgram& ready,
    const std::string& label, SteadyTime deadline, const Resolved& resolved) {
  const size_t num_outputs = ready.plan->outputs.size();
  if (resolved.targets.size() != num_outputs) {
    return InvalidField(v1::ERROR_REASON_ARGUMENT_COUNT, "outputs",
                        absl::StrCat("the program has ", num_outputs,
                                     " results; outputs given: ", resolved.targets.size()));
  }
  const bool one = ready.program_launch != nullptr && FitsADevice(*ready.program_launch, resolved);
  auto whole =
      one ? LaunchAsOneTask(transaction, tenant, ready.program_launch, label, deadline, resolved)
          : LaunchSteps(transaction, tenant, ready, deadline, resolved);
  if (!whole.ok()) return whole;
  for (size_t j = 0; j < resolved.targets.size(); ++j) {
    if (resolved.targets[j].existing == nullptr) continue;
    v1::Operation copy;
    copy.mutable_copy()->mutable_input()->set_handle(1);  // stands for the result
    copy.add_outputs()->set_existing(true);
    Resolved last = resolved.WithInputs({whole->outputs[j]});
    last.targets = {resolved.targets[j]};
    auto copied = Launch(transaction, tenant, copy, deadline, last);
    if (!copied.ok()) return copied.status();
    whole->task = copied->task;
    whole->outputs[j] = copied->outputs[0];
  }
  whole->waits_for_helpers = true;
  return whole;
}

absl::StatusOr<Operations::Accepted> Operations::LaunchSteps(TenantTransaction& transaction,
                                                             const TenantId& tenant,
                                                             const PlannedProgram& ready,
                                                             SteadyTime deadline,
                                                             const Resolved& resolved) {
  const ops::ProgramPlan& plan = *ready.plan;
  std::map<uint64_t, ArrayPtr> arrays;
  std::map<uint64_t, size_t> targets;
  for (size_t i = 0; i < plan.input_handles.size(); ++i)
    arrays[plan.input_handles[i]] = resolved.inputs[i];
  for (size_t j = 0; j < plan.output_handles.size(); ++j) targets[plan.output_handles[j]] = j;
  Accepted whole;
  whole.outputs.resize(resolved.targets.size());
  for (size_t i = 0; i < plan.steps.size(); ++i) {
    const ops::ProgramStep& step = plan.steps[i];
    session::ArrayList inputs;
    for (uint64_t handle : step.inputs) inputs.push_back(handle == 0 ? nullptr : arrays.at(handle));
    Resolved one = resolved.WithInputs(std::move(inputs));
    for (size_t j = 0; j < step.outputs.size(); ++j) {
      Resolved::Target target{.is_inline = true};
      auto result = targets.find(step.outputs[j]);
      if (step.existing[j]) {
        target = {.existing = arrays.at(step.outputs[j])};
      } else if (result != targets.end() && resolved.targets[result->second].existing == nullptr) {
        target = resolved.targets[result->second];
      }
      one.targets.push_back(std::move(target));
    }
    auto launched =
        !(*ready.bodies)[i].empty()
            ? LaunchBodies(transaction, tenant, step, (*ready.bodies)[i], deadline, one)
            : Launch(transaction, tenant, step.operation, deadline, one, (*ready.steps)[i]);
    if (!launched.ok()) return launched.status();
    if (launched->task != nullptr) whole.task = launched->task;
    for (size_t j = 0; j < step.outputs.size(); ++j) {
      arrays[step.outputs[j]] = launched->outputs[j];
      auto result = targets.find(step.outputs[j]);
      if (result != targets.end()) whole.outputs[result->second] = launched->outputs[j];
    }
  }
  return whole;
}

bool Operations::FitsADevice(const ProgramLaunch& program_launch, const Resolved& resolved) const {
  std::set<const store::Buffer*> inputs;
  auto bytes = static_cast<uint64_t>(program_launch.graph.scratch_bytes);
  for (const ArrayPtr& input : resolved.inputs) {
    if (inputs.insert(input->buffer.get()).second)
      bytes += static_cast<uint64_t>(input->buffer->size);
  }
  for (int64_t size : program_launch.graph.result_bytes) bytes += static_cast<uint64_t>(size);
  const auto& devices = core_->broker->devices();
  for (size_t i = 0; i < devices.size(); ++i) {
    const int device = static_cast<int>(i);
    if (resolved.device >= 0 && resolved.device != device) continue;
    // The scheduler may choose any of them.
    if (bytes > scheduler_->memory().arenas().limit_bytes(device)) return false;
  }
  return true;
}

absl::StatusOr<Operations::Accepted> Operations::LaunchAsOneTask(
    TenantTransaction& transaction, const TenantId& tenant,
    const std::shared_ptr<ProgramLaunch>& program_launch, const std::string& label,
    SteadyTime deadline, const Resolved& resolved) {
  const ops::ProgramGraph& graph = program_launch->graph;
  std::shared_ptr<Task> task =
      NewTask(tenant, label, deadline, resolved, MakePlanned(PlanOf(*program_launch)));
  task->program_launch = program_launch;
  for (size_t i = 0; i < resolved.inputs.size(); ++i) {
    task->uses.push_back({.buffer = resolved.inputs[i]->buffer,
                          .read = true,
                          .write = graph.written[i] || graph.passed[i]});
  }
  int64_t bytes = 0;
  for (const ArrayInfo& made : task->plan().outputs) {
    bytes += made.size_bytes();
    if (made.size_bytes() <= core_->options.max_array_bytes) continue;
    return InvalidField(
        v1::ERROR_REASON_SIZE_LIMIT, "outputs",
        absl::StrCat("the program makes more than an array may have. Bytes: ", made.size_bytes(),
                     ", limit: ", core_->options.max_array_bytes));
  }
  if (absl::Status within = core_->accounts->CheckArrayBytes(tenant, bytes); !within.ok())
    return within;
  for (const ArrayInfo& made : task->plan().outputs) {
    task->uses.push_back(
        {.buffer = MakePooled<store::Buffer>(tenant, made.size_bytes(), core_->reclaimer),
         .write = true,
         .fresh = true});
  }
  Resolved whole = resolved;
  for (const ops::ProgramGraph::Output& output : graph.outputs) {
    auto array = MakePooled<Array>();
    array->info = output.info;
    array->create_time = resolved.now;
    array->buffer = task->uses[output.slot].buffer;
    whole.outputs.push_back(std::move(array));
  }
  if (absl::Status status = Begin(transaction, tenant, task, whole); !status.ok()) return status;
  Accepted accepted;
  accepted.outputs = whole.outputs;
  accepted.task = task;
  return accepted;
}

}  // namespace stride::engine
