#include "server/engine/scheduling/code_preparer.h"

#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/base/error.h"
#include "server/engine/core/device_queue.h"
#include "server/engine/scheduling/hazards.h"

namespace stride::engine {
namespace {

// Adds the field of the launch that is at fault to a compiler's error.
absl::Status AtLaunch(const absl::Status& refusal, const v1::KernelLaunch& launch) {
  if (!absl::IsInvalidArgument(refusal)) return refusal;
  if (ReasonOf(refusal) == v1::ERROR_REASON_UNKNOWN_ENTRY) {
    for (int i = 0; i < launch.globals_size(); ++i) {
      if (MetadataOf(refusal, "entry") != "&" + launch.globals(i).name()) continue;
      return AtField(refusal, absl::StrCat("kernel_launch.globals[", i, "].name"),
                     "not in the code");
    }
    return AtField(refusal, "kernel_launch.entry", "not in the code");
  }
  return AtField(refusal, "kernel_launch.source", "does not compile");
}

}  // namespace

bool CodePreparer::Have(TenantTransaction& transaction, const std::shared_ptr<Task>& task) {
  return HaveCode(transaction, task) && HaveArguments(transaction, task);
}

bool CodePreparer::HaveCode(TenantTransaction& transaction, const std::shared_ptr<Task>& task) {
  if (task->program_launch != nullptr) return HaveCompiledProgram(transaction, task);
  if (!task->plan().code.has_value()) return true;
  const std::string& target = task->queue->description.target();
  if (task->code.module != nullptr && task->code.module->target == target) return true;
  PlannedCode& code = task->planned->codes[target];
  task->code.block_loops = nullptr;
  task->code.module = code.module.lock();
  if (task->code.module != nullptr) return true;
  if (code.ran_by_blocks == 0) {
    code.module = task->code.module =
        core_->broker->compiler().Lookup(task->tenant, target, *task->plan().code);
    if (task->code.module != nullptr) return true;
  }
  if (task->code.compile_requested) return false;
  auto loops = BlockLoopsFor(*task, target);
  if (loops != nullptr && RunByBlocks(*task, loops, target, code)) return true;
  task->code.compile_requested = true;
  task->timeline.compile_start = core_->Now();
  // After the transaction: the compiler may call back at once.
  std::optional<wire::Code> plain;
  if (loops != nullptr) plain = code.first_tier->plain_reduce;
  core_->executor.Run([this, task, target, loops, plain = std::move(plain)] {
    const wire::Code& wanted = plain.has_value() ? *plain : *task->plan().code;
    core_->broker->compiler().Compile(task->tenant, target, wanted, [=, this](auto module) {
      TenantTransaction transaction(*core_, task->tenant);
      task->code.compile_requested = false;
      task->timeline.compile_end = core_->Now();
      if (task->state != TaskState::kPreparing) return;
      if (!module.ok()) {
        events_->EndUnrun(transaction, task,
                          task->kernel != nullptr
                              ? AtLaunch(module.status(), task->kernel->operation->kernel_launch())
                              : module.status());
        return;
      }
      task->code.module = *std::move(module);
      if (loops != nullptr) {
        task->planned->codes[target].plain = task->code.module;
        NoteRunByBlocks(*task, loops, target);
      }
      events_->Prepare(transaction, task);
    });
  });
  return false;
}

// The loops on which an operation can run before its code is compiled. Null: it waits for its code,
// or its code was compiled with the product.
CodePreparer::Module CodePreparer::BlockLoopsFor(const Task& task, const std::string& target) {
  const wire::Code& code = *task.plan().code;
  if (!code.has_elementwise() && !code.has_reduce()) return nullptr;
  auto loops = core_->broker->compiler().BlockLoops(target);
  if (loops == nullptr) return nullptr;
  PlannedCode& planned = task.planned->codes[target];
  if (!planned.first_tier.has_value()) {
    FirstTier& tier = planned.first_tier.emplace(FirstTierOf(task.plan().task, code, *loops));
    tier.by_blocks = tier.by_blocks && HasPlainReduction(tier, target);
  }
  if (!planned.first_tier->by_blocks) return nullptr;
  std::optional<bool>& is_precompiled = planned.is_precompiled;
  if (!is_precompiled.has_value())
    is_precompiled = core_->broker->compiler().IsPrecompiled(target, code);
  return *is_precompiled ? nullptr : loops;
}

// A plain reduction that has to be compiled would take as long as the code itself.
bool CodePreparer::HasPlainReduction(const FirstTier& tier, const std::string& target) const {
  return !tier.plain_reduce.has_value() ||
         core_->broker->compiler().IsPrecompiled(target, *tier.plain_reduce);
}

// False: the plain reduction that the task needs is not compiled.
bool CodePreparer::RunByBlocks(Task& task, Module loops, const std::string& target,
                               PlannedCode& code) {
  const std::optional<wire::Code>& plain = code.first_tier->plain_reduce;
  if (plain.has_value()) {
    task.code.module = code.plain.lock();
    if (task.code.module == nullptr) {
      code.plain = task.code.module = core_->broker->compiler().Lookup(task.tenant, target, *plain);
    }
    if (task.code.module == nullptr) return false;
  } else {
    task.code.module = loops;
  }
  NoteRunByBlocks(task, std::move(loops), target);
  return true;
}

// The elements that a plan ran by blocks decide when its code is worth a compilation.
void CodePreparer::NoteRunByBlocks(Task& task, Module loops, const std::string& target) {
  task.code.block_loops = std::move(loops);
  PlannedCode& code = task.planned->codes[target];
  code.ran_by_blocks += kLaunchElements + code.first_tier->elements;
  if (code.ran_by_blocks < kElementsWorthCode || std::exchange(code.requested, true)) return;
  // After the transaction: the compiler may call back at once.
  core_->executor.Run([this, planned = task.planned, tenant = task.tenant, target] {
    core_->broker->compiler().CompileLater(
        tenant, target, *planned->plan.code, [this, planned, tenant, target](auto module) {
          TenantTransaction transaction(*core_, tenant);
          PlannedCode& known = planned->codes[target];
          if (module.ok()) {
            known = {.module = *std::move(module), .first_tier = std::move(known.first_tier)};
          } else if (absl::IsUnavailable(
                         module.status())) {  // too many compilations are pending: try later
            known.ran_by_blocks = kLaunchElements;
            known.requested = false;
          }
        });
  });
}

bool CodePreparer::HaveArguments(TenantTransaction& transaction,
                                 const std::shared_ptr<Task>& task) {
  KernelArguments* const arguments = task->kernel.get();
  if (arguments == nullptr || arguments->bound) return true;
  const v1::KernelLaunch& launch = arguments->operation->kernel_launch();
  auto found = FindKernel(task->code.module->description, launch.entry());
  if (!found.ok()) {
    events_->EndUnrun(transaction, task, found.status());
    return false;
  }
  const wire::KernelDescription* kernel = *found;
  auto bound = MakePlanned(task->plan());
  wire::Task* launched = &bound->plan.task;
  absl::Status status = ops::BindKernelArguments(launch, arguments->inputs, *kernel, launched);
  if (status.ok()) {
    status =
        ops::BindKernelGlobals(launch, arguments->inputs, task->code.module->description, launched);
  }
  if (!status.ok()) {
    events_->EndUnrun(transaction, task, status);
    return false;
  }
  // Until now every array argument counted as written. Arguments that are pointers to const are
  // only read: a fault must not spoil their arrays.
  std::vector<bool> written(arguments->inputs.size(), false);
  for (int index : ops::WrittenOperands(launch, *kernel)) written[index] = true;
  for (size_t i = 0; i < arguments->inputs.size(); ++i) task->uses[i].write = written[i];
  if (WritesHeld(*task)) {
    events_->EndUnrun(transaction, task, WritesInputOfBody(*task));
    return false;
  }
  task->planned = std::move(bound);
  arguments->bound = true;
  return true;
}

}  // namespace stride::engine
