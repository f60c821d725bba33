#include "server/engine/operations/operations.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/base/block_pool.h"
#include "server/base/error.h"
#include "server/base/status_bytes.h"
#include "server/base/steady_time.h"
#include "server/engine/core/infos.h"
#include "server/engine/definitions/module_code.h"
#include "server/engine/operations/operation_outputs.h"
#include "server/engine/operations/resolve_operation.h"
#include "server/engine/persistence/journal_writer.h"
#include "server/ops/operation_kind.h"
#include "server/ops/plan.h"

namespace stride::engine {

using session::Array;
using ArrayPtr = std::shared_ptr<Array>;

namespace {

std::vector<ops::Input> CopiesOf(absl::Span<const ArrayInfo* const> infos) {
  std::vector<ops::Input> copies;
  for (const ArrayInfo* info : infos)
    copies.push_back(info != nullptr ? ops::Input(*info) : std::nullopt);
  return copies;
}

// A queued one keeps its operation, with its code in the plan and both in the journal. Other
// operations are as large as their numbers are few, or share their plans.
int64_t KernelControlBytes(const v1::Operation& operation) {
  return 3 * static_cast<int64_t>(operation.ByteSizeLong());
}

bool Overlap(const ArrayInfo& a, const ArrayInfo& b) {
  ByteExtent x = Extent(a), y = Extent(b);
  return x.begin < y.end && y.begin < x.end;
}

}  // namespace

absl::StatusOr<Operations::Accepted> Operations::Accept(const TenantId& tenant,
                                                        const std::string& session,
                                                        const ops::OperationView& operation,
                                                        SteadyTime deadline, Extras extras) {
  if (operation->has_program_call())
    return SubmitProgram(tenant, session, operation, deadline, std::move(extras));
  if (NeedsGlobal(operation.outputs(), extras)) {
    GlobalTransaction transaction(*core_);
    return Accept(transaction, tenant, session, operation, deadline, std::move(extras));
  }
  TenantTransaction transaction(*core_, tenant);
  return Accept(transaction, tenant, session, operation, deadline, std::move(extras));
}

absl::StatusOr<Operations::Accepted> Operations::Accept(TenantTransaction& transaction,
                                                        const TenantId& tenant,
                                                        const std::string& session,
                                                        const ops::OperationView& operation,
                                                        SteadyTime deadline, Extras extras) {
  assert(!operation->has_program_call());
  assert(transaction.is_global() || !NeedsGlobal(operation.outputs(), extras));
  TaskList launched;
  Resolved resolved = ResolvedFor(std::move(extras), &launched);
  absl::StatusOr<Accepted> accepted = Accepted{};
  if (absl::Status status =
          ResolveOperation(*core_, transaction, tenant, session, operation, &resolved);
      !status.ok()) {
    accepted = status;
  } else if (IsSharded(resolved)) {
    accepted = LaunchSharded(transaction, tenant, operation, deadline, resolved);
  } else if (operation->kind_case() == v1::Operation::kCopy && operation->copy().move()) {
    accepted = LaunchMove(transaction, tenant, operation, deadline, resolved);
  } else {
    auto is_inline = [](const Resolved::Target& target) { return target.is_inline; };
    resolved.passing = !resolved.extras.observer && !resolved.targets.empty() &&
                       std::all_of(resolved.targets.begin(), resolved.targets.end(), is_inline);
    accepted = Launch(transaction, tenant, operation, deadline, resolved);
  }
  return Conclude(transaction, tenant, session, operation, std::move(accepted),
                  std::move(launched));
}

// A plan is made without a transaction, between two.
Operations::Resolved Operations::ResolvedFor(Extras extras, TaskList* launched) const {
  Resolved resolved;
  resolved.now = core_->Now();
  resolved.extras = std::move(extras);
  resolved.launched = launched;
  return resolved;
}

absl::StatusOr<Operations::Accepted> Operations::Conclude(
    TenantTransaction& transaction, const TenantId& tenant, const std::string& session,
    const ops::OperationView& operation, absl::StatusOr<Accepted> accepted, TaskList launched) {
  if (!accepted.ok()) {
    for (const auto& task : launched) scheduler_->cancellation().Cancel(transaction, task);
    PublishError(*core_, transaction, tenant, session, operation, accepted.status());
    return accepted;
  }
  for (auto& task : launched) {
    if (task != accepted->task) accepted->helpers.push_back(std::move(task));
  }
  return accepted;
}

bool Operations::NeedsGlobal(const ops::OutputList& outputs, const Extras& extras) {
  if (extras.observer != nullptr || extras.after != nullptr) return true;
  return std::any_of(outputs.begin(), outputs.end(), [](const v1::Output* output) {
    return output->target_case() == v1::Output::kName;
  });
}

absl::StatusOr<Operations::Accepted> Operations::Launch(TenantTransaction& transaction,
                                                        const TenantId& tenant,
                                                        const ops::OperationView& operation,
                                                        SteadyTime deadline, Resolved& resolved,
                                                        std::shared_ptr<const Planned> known) {
  const Infos inputs = InfosOf(resolved.inputs);
  Infos existing;
  for (const auto& target : resolved.targets) existing.push_back(InfoOf(target.existing));
  auto planned = known != nullptr ? absl::StatusOr<std::shared_ptr<const Planned>>(std::move(known))
                                  : PlanFor(transaction, tenant, operation, inputs, existing);
  if (!planned.ok()) return planned.status();
  const ops::Plan* const plan = &(*planned)->plan;
  if (plan->outputs.size() != resolved.targets.size()) {
    return InvalidField(v1::ERROR_REASON_ARGUMENT_COUNT, "outputs",
                        absl::StrCat("the operation has ", plan->outputs.size(),
                                     " results; outputs given: ", resolved.targets.size()));
  }
  if (!plan->converted_inputs.empty())
    return LaunchConverted(transaction, tenant, operation, deadline, resolved,
                           plan->converted_inputs);
  if (plan->through_new_output)
    return LaunchThroughTemporary(transaction, tenant, operation, deadline, resolved);
  for (size_t j = 0; j < resolved.targets.size(); ++j) {
    for (size_t k = 0; k < j; ++k) {
      const ArrayPtr &one = resolved.targets[j].existing, &other = resolved.targets[k].existing;
      if (operation->has_kernel_launch() || one == nullptr || other == nullptr) continue;
      if (one->buffer == other->buffer && Overlap(one->info, other->info))
        return InvalidField(v1::ERROR_REASON_INVALID_FIELD, absl::StrCat("outputs[", j, "]"),
                            "two existing outputs share memory");
    }
  }
  // A result written over its own input element by element is fine; any other overlap has to go
  // through fresh memory. What keeps a part of its output takes copies of its inputs instead.
  const auto keeps_output = operation.kind().keeps_output;
  const bool keeps = keeps_output != nullptr && keeps_output(*operation);
  std::vector<std::optional<DType>> copied;
  for (size_t j = 0; j < resolved.targets.size(); ++j) {
    const ArrayPtr& out = resolved.targets[j].existing;
    if (out == nullptr || operation->has_kernel_launch()) continue;
    for (size_t i = 0; i < resolved.inputs.size(); ++i) {
      const ArrayPtr& input = resolved.inputs[i];
      if (input == nullptr || input->buffer != out->buffer || !Overlap(input->info, out->info))
        continue;
      if (plan->task.has_elementwise() && *input->info == *out->info) continue;
      if (!keeps) return LaunchThroughTemporary(transaction, tenant, operation, deadline, resolved);
      copied.resize(resolved.inputs.size());
      copied[i] = input->info->dtype;
    }
  }
  if (!copied.empty())
    return LaunchConverted(transaction, tenant, operation, deadline, resolved, copied);

  std::shared_ptr<Task> task = NewTask(tenant, operation.label(), deadline, resolved, *planned);
  bool is_kernel = operation->has_kernel_launch();
  // Which of a kernel's arrays are written is known once it is compiled; until then all may be, but
  // for the values of its globals.
  const size_t num_written =
      is_kernel ? resolved.inputs.size() - ops::NumGlobalOperands(operation->kernel_launch()) : 0;
  for (size_t i = 0; i < resolved.inputs.size(); ++i) {
    const ArrayPtr& input = resolved.inputs[i];
    if (resolved.passing && input != nullptr && input->buffer->inline_bytes != nullptr &&
        input->name.empty())
      input->buffer->passing = true;
    task->uses.push_back({.buffer = input != nullptr ? input->buffer : nullptr,
                          .read = true,
                          .write = i < num_written});
  }
  if (is_kernel) {
    task->kernel = std::make_unique<KernelArguments>();
    task->kernel->inputs = CopiesOf(inputs);
    auto kept = std::make_shared<v1::Operation>(*operation);
    kept->mutable_kernel_launch()->clear_code();  // the plan has it
    task->kernel->operation = std::move(kept);
    auto charge = core_->accounts->ControlOf(tenant)->Take(KernelControlBytes(*operation));
    if (!charge.ok()) return charge.status();
    task->kernel->control = *std::move(charge);
  }
  for (size_t j = 0; j < resolved.targets.size(); ++j) {
    ArrayPtr array = resolved.targets[j].existing;
    if (array == nullptr) {
      array = MakePooled<Array>();
      array->info = (*planned)->outputs[j];
      array->create_time = resolved.now;
      const int64_t bytes = array->info->size_bytes();
      if (bytes > core_->options.max_array_bytes) {
        return InvalidField(v1::ERROR_REASON_SIZE_LIMIT, "outputs",
                            absl::StrCat("the result is larger than an array may be. Bytes: ",
                                         bytes, ", limit: ", core_->options.max_array_bytes));
      }
      if (plan->is_view) {
        array->buffer = resolved.inputs[0]->buffer;
      } else {
        absl::Status within = core_->accounts->CheckArrayBytes(tenant, bytes);
        if (!within.ok()) return within;
        array->buffer = MakePooled<store::Buffer>(tenant, bytes, core_->reclaimer);
        array->buffer->passing = resolved.passing;
      }
    }
    resolved.outputs.push_back(array);
    bool fresh = resolved.targets[j].existing == nullptr || resolved.targets[j].fresh;
    task->uses.push_back({.buffer = array->buffer, .read = false, .write = true, .fresh = fresh});
  }
  Accepted accepted;
  if (plan->is_view) {
    if (absl::Status status = PublishOutputs(*core_, transaction, tenant, resolved); !status.ok())
      return status;
    accepted.outputs = std::move(resolved.outputs);
    return accepted;
  }
  if (is_kernel) {
    if (absl::Status status = PrepareKernel(transaction, tenant, operation, task.get());
        !status.ok())
      return status;
  }
  if (absl::Status status = Begin(transaction, tenant, task, resolved); !status.ok()) return status;
  accepted.outputs = std::move(resolved.outputs);
  accepted.task = task;
  return accepted;
}

absl::StatusOr<std::shared_ptr<const Planned>> Operations::PlanFor(
    TenantTransaction& transaction, const TenantId& tenant, const ops::OperationView& operation,
    absl::Span<const ArrayInfo* const> inputs, absl::Span<const ArrayInfo* const> existing) {
  PlanCache& plans = plans_.Of(transaction, tenant);
  const ops::PlanKey key(tenant, operation, inputs, existing);
  if (!key.bytes().empty()) {
    if (std::shared_ptr<const Planned> kept = plans.Find(key.bytes())) return kept;
  }
  const TenantFunctions functions(transaction, *functions_, tenant);
  auto plan = ops::PlanOperation(operation, CopiesOf(inputs), CopiesOf(existing), &functions);
  if (!plan.ok()) return plan.status();
  std::shared_ptr<const Planned> planned = MakePlanned(*std::move(plan));
  // A client's function may become another one of that name.
  if (!key.bytes().empty() && !functions.found_any()) plans.Keep(key.bytes(), planned);
  return planned;
}

std::shared_ptr<Task> Operations::NewTask(const TenantId& tenant, std::string label,
                                          SteadyTime deadline, const Resolved& resolved,
                                          std::shared_ptr<const Planned> planned) {
  auto task = MakePooled<Task>(std::move(planned));
  task->id = next_task_++;
  task->tenant = tenant;
  task->session = resolved.session;
  task->label = std::move(label);
  task->options.pinned_device = resolved.device;
  task->options.reads_peers = resolved.reads_peers;
  task->options.deadline = deadline;
  if (resolved.extras.observer != nullptr)
    task->callbacks.observer =
        std::make_unique<const std::function<void(TaskState)>>(resolved.extras.observer);
  task->options.of_job = task->callbacks.observer != nullptr;
  task->options.priority = resolved.extras.priority.value_or(0);
  task->options.piece = task->options.of_body = resolved.held != nullptr;
  return task;
}

absl::Status Operations::Begin(TenantTransaction& transaction, const TenantId& tenant,
                               const std::shared_ptr<Task>& task, Resolved& resolved) {
  if (absl::Status status = PublishOutputs(*core_, transaction, tenant, resolved); !status.ok())
    return status;
  for (Use& use : task->uses)
    use.held = resolved.held != nullptr && resolved.held->count(use.buffer.get()) > 0;
  if (absl::Status status = scheduler_->Enqueue(transaction, task, resolved.extras.after);
      !status.ok()) {
    for (const auto& output : resolved.outputs) {
      if (output->buffer == nullptr || output->buffer->writer != nullptr) continue;
      output->error = status;
      output->control.Set(output->control.bytes() + StatusBytes(status));
      core_->journal_writer->Changed(transaction, output);
    }
    return status;
  }
  // A launch whose code is available is refused at once. Without an output array for the error, the
  // answer reports it; a job reports its own.
  bool told_by_nothing = resolved.targets.empty() && !task->options.of_job;
  if (told_by_nothing && task->state == TaskState::kDone && !task->result.ok()) return task->result;
  if (resolved.launched != nullptr) resolved.launched->push_back(task);
  return absl::OkStatus();
}

absl::StatusOr<Operations::Accepted> Operations::LaunchThroughTemporary(
    TenantTransaction& transaction, const TenantId& tenant, const ops::OperationView& operation,
    SteadyTime deadline, Resolved& resolved) {
  Resolved first = resolved;
  for (auto& target : first.targets) target = {.is_inline = true};
  first.passing = false;
  first.extras.observer = nullptr;
  auto computed = Launch(transaction, tenant, operation, deadline, first);
  if (!computed.ok()) return computed.status();
  Accepted accepted;
  for (size_t j = 0; j < resolved.targets.size(); ++j) {
    v1::Operation copy;
    copy.mutable_copy()->mutable_input()->set_handle(
        1);  // stands for the temporary; looked up already
    copy.add_outputs()->set_existing(true);
    Resolved second;
    second.session = resolved.session;
    second.now = resolved.now;
    second.device = resolved.device;
    second.inputs = {computed->outputs[j]};
    second.targets = {resolved.targets[j]};
    second.targets[0].is_inline = false;
    second.extras = resolved.extras;
    if (j + 1 < resolved.targets.size()) second.extras.observer = nullptr;
    second.launched = resolved.launched;
    second.held = resolved.held;
    auto copied = Launch(transaction, tenant, copy, deadline, second);
    if (!copied.ok()) return copied.status();
    accepted.task = copied->task;
    accepted.outputs.push_back(copied->outputs[0]);
  }
  return accepted;
}

absl::StatusOr<Operations::Accepted> Operations::LaunchConverted(
    TenantTransaction& transaction, const TenantId& tenant, const ops::OperationView& operation,
    SteadyTime deadline, const Resolved& resolved, const std::vector<std::optional<DType>>& types) {
  Resolved converted = resolved;
  for (size_t i = 0; i < types.size(); ++i) {
    if (!types[i].has_value()) continue;
    auto copy = LaunchCopy(transaction, tenant, resolved.inputs[i], *types[i], deadline, resolved);
    if (!copy.ok()) return copy.status();
    converted.inputs[i] = copy->outputs[0];
  }
  return Launch(transaction, tenant, operation, deadline, converted);
}

absl::StatusOr<Operations::Accepted> Operations::LaunchCopy(
    TenantTransaction& transaction, const TenantId& tenant, const ArrayPtr& array,
    std::optional<DType> type, SteadyTime deadline, const Resolved& around) {
  v1::Operation copy;
  copy.mutable_copy()->mutable_input()->set_handle(1);  // stands for the array; looked up already
  if (type.has_value()) copy.mutable_copy()->set_data_type(static_cast<v1::DataType>(*type));
  copy.add_outputs()->set_inline_result(true);
  Resolved resolved;
  resolved.session = around.session;
  resolved.now = around.now;
  resolved.device = around.device;
  resolved.extras.after = around.extras.after;
  resolved.launched = around.launched;
  resolved.held = around.held;
  resolved.extras.priority = around.extras.priority;
  resolved.inputs = {array};
  resolved.targets = {{.is_inline = true}};
  return Launch(transaction, tenant, copy, deadline, resolved);
}

absl::StatusOr<Operations::Accepted> Operations::LaunchMove(TenantTransaction& transaction,
                                                            const TenantId& tenant,
                                                            const ops::OperationView& operation,
                                                            SteadyTime deadline,
                                                            Resolved& resolved) {
  if (resolved.device < 0) {
    return InvalidField(v1::ERROR_REASON_INVALID_FIELD, "device",
                        "a move needs the device to move to");
  }
  if (operation->copy().data_type() != v1::DATA_TYPE_UNSPECIFIED) {
    return InvalidField(v1::ERROR_REASON_INVALID_FIELD, "copy.data_type",
                        "a move keeps the type; leave this unset or copy");
  }
  if (resolved.inputs.size() != 1 || resolved.inputs[0] == nullptr) {
    return InvalidField(v1::ERROR_REASON_INVALID_FIELD, "copy.input", "a move needs an array");
  }
  if (resolved.targets.size() != 1 || resolved.targets[0].existing != nullptr) {
    return InvalidField(v1::ERROR_REASON_ARGUMENT_COUNT, "outputs", "a move has one new output");
  }
  const ArrayPtr& input = resolved.inputs[0];
  auto array = MakePooled<Array>();
  array->info = input->info;
  array->buffer = input->buffer;
  array->create_time = resolved.now;
  resolved.outputs = {array};
  std::shared_ptr<Task> task = NewTask(tenant, "move", deadline, resolved);
  task->options.drop_other_replicas = true;
  // Ordered as a write, since it drops the copies that readers before it use.
  task->uses.push_back({.buffer = input->buffer, .read = true, .write = true});
  if (absl::Status status = PublishOutputs(*core_, transaction, tenant, resolved); !status.ok())
    return status;
  if (absl::Status status = scheduler_->Enqueue(transaction, task, resolved.extras.after);
      !status.ok())
    return status;
  if (resolved.launched != nullptr) resolved.launched->push_back(task);
  Accepted accepted;
  accepted.task = task;
  accepted.outputs = resolved.outputs;
  return accepted;
}

absl::Status Operations::PrepareKernel(TenantTransaction& transaction, const TenantId& tenant,
                                       const ops::OperationView& operation, Task* task) {
  const v1::KernelLaunch& launch = operation->kernel_launch();
  if (launch.code_case() == v1::KernelLaunch::kModule) {
    auto source = find_module_(transaction, tenant, launch.module());
    if (!source.ok()) return source.status();
    auto code = CodeOfModule(*std::move(source), launch);
    if (!code.ok()) return code.status();
    auto planned = MakePlanned(task->plan());
    absl::Status charged =
        task->kernel->control.Grow(3 * static_cast<int64_t>(code->ByteSizeLong()));
    if (!charged.ok()) return charged;
    planned->plan.required_kind = ops::RequiredKind(*code);
    planned->plan.code = *std::move(code);
    task->planned = std::move(planned);
  }
  return absl::OkStatus();
}

void Operations::Refuse(TenantTransaction& transaction, const TenantId& tenant,
                        const std::string& session, const ops::OperationView& operation,
                        const absl::Status& status) {
  PublishError(*core_, transaction, tenant, session, operation, status);
}

absl::StatusOr<ArrayPtr> Operations::MakeContiguous(TenantTransaction& transaction,
                                                    const TenantId& tenant, const ArrayPtr& array) {
  Resolved around;
  around.now = core_->Now();
  auto accepted =
      LaunchCopy(transaction, tenant, array, std::nullopt, SteadyTime::InfiniteFuture(), around);
  if (!accepted.ok()) return accepted.status();
  return accepted->outputs[0];
}

}  // namespace stride::engine
