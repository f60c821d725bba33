// CodePreparer: the code of programs that run as one task, in either tier.
#include <utility>

#include "server/engine/core/device_queue.h"
#include "server/engine/scheduling/code_preparer.h"
#include "server/engine/scheduling/hazards.h"

namespace stride::engine {

// Whether the code of all steps is available for the device's target. The first task without it
// requests it from the compiler.
bool CodePreparer::HaveCompiledProgram(TenantTransaction& transaction,
                                       const std::shared_ptr<Task>& task) {
  const std::string& target = task->queue->description.target();
  if (auto found = task->program_launch->compiled.find(target);
      found != task->program_launch->compiled.end()) {
    NoteLaunchByBlocks(*task, target, found->second->elements_by_blocks);
    return TakeProgramLaunch(transaction, task, found->second);
  }
  if (std::exchange(task->code.compile_requested, true)) return false;
  task->timeline.compile_start = core_->Now();
  auto tier = std::make_shared<const LaunchTier>(TierOf(*task, target));
  const std::vector<wire::Code>& codes = task->program_launch->graph.codes;
  std::vector<const wire::Code*> wanted;
  for (size_t i = 0; i < codes.size(); ++i) {
    if (!tier->RunsByBlocks(static_cast<int>(i))) {
      wanted.push_back(&codes[i]);
    } else {
      const std::optional<wire::Code>& plain = tier->codes[i]->plain_reduce;
      wanted.push_back(plain.has_value() ? &*plain : nullptr);
    }
  }
  CompileAll(task->tenant, target, std::move(wanted), /*later=*/false,
             [this, task, target, tier](TenantTransaction& transaction, std::vector<Module> modules,
                                        absl::Status error) {
               task->code.compile_requested = false;
               task->timeline.compile_end = core_->Now();
               if (task->state != TaskState::kPreparing) return;
               for (size_t i = 0; i < modules.size(); ++i) {
                 if (modules[i] == nullptr) modules[i] = tier->loops;
               }
               absl::StatusOr<CompiledProgram> ready =
                   error.ok()
                       ? MakeCompiledProgram(task->program_launch->graph, std::move(modules), *tier)
                       : absl::StatusOr<CompiledProgram>(error);
               if (!ready.ok()) {
                 events_->EndUnrun(transaction, task, ready.status());
                 return;
               }
               task->program_launch->compiled[target] =
                   std::make_shared<const CompiledProgram>(*std::move(ready));
               events_->Prepare(transaction, task);
             });
  return false;
}

bool CodePreparer::TakeProgramLaunch(TenantTransaction& transaction,
                                     const std::shared_ptr<Task>& task,
                                     std::shared_ptr<const CompiledProgram> ready) {
  task->code.compiled = std::move(ready);
  // Until now every array argument of a kernel counted as written.
  for (size_t i = 0; i < task->code.compiled->written.size(); ++i)
    task->uses[i].write = task->code.compiled->written[i];
  if (!WritesHeld(*task)) return true;
  events_->EndUnrun(transaction, task, WritesInputOfBody(*task));
  return false;
}

// A step runs by blocks unless its code was compiled before, here or with the product.
LaunchTier CodePreparer::TierOf(const Task& task, const std::string& target) const {
  broker::Compiler& compiler = core_->broker->compiler();
  LaunchTier tier{compiler.BlockLoops(target), {}};
  if (tier.loops == nullptr) return tier;
  const ops::ProgramGraph& graph = task.program_launch->graph;
  tier.codes.resize(graph.codes.size());
  std::vector<bool> own(graph.codes.size());
  for (size_t i = 0; i < graph.codes.size(); ++i) {
    own[i] = compiler.IsPrecompiled(target, graph.codes[i]) ||
             compiler.Lookup(task.tenant, target, graph.codes[i]) != nullptr;
  }
  for (const ops::GraphStep& step : graph.steps) {
    if (step.code < 0 || own[static_cast<size_t>(step.code)]) continue;
    const auto code = static_cast<size_t>(step.code);
    FirstTier first = FirstTierOf(step.task, graph.codes[code], *tier.loops);
    if (first.by_blocks && HasPlainReduction(first, target)) {
      tier.codes[code] = std::move(first);
    } else {
      tier.codes[code].reset();
      own[code] = true;
    }
  }
  return tier;
}

// A program that ran by blocks for long enough gets code of its own.
void CodePreparer::NoteLaunchByBlocks(const Task& task, const std::string& target,
                                      int64_t elements) {
  if (elements == 0) return;
  ProgramLaunch::ByBlocks& known = task.program_launch->by_blocks[target];
  known.elements += elements;
  if (known.elements < kElementsWorthCode || std::exchange(known.requested, true)) return;
  std::vector<const wire::Code*> wanted;
  for (const wire::Code& code : task.program_launch->graph.codes) wanted.push_back(&code);
  CompileAll(task.tenant, target, std::move(wanted), /*later=*/true,
             [program_launch = task.program_launch, target](
                 TenantTransaction&, std::vector<Module> modules, absl::Status error) {
               if (absl::IsUnavailable(error)) {  // too many compilations are pending: try later
                 program_launch->by_blocks[target] = {};
               } else if (error.ok()) {
                 auto ready =
                     MakeCompiledProgram(program_launch->graph, std::move(modules), LaunchTier());
                 if (!ready.ok())
                   return;  // an error of a kernel, which the first tier has reported too
                 program_launch->compiled[target] =
                     std::make_shared<const CompiledProgram>(*std::move(ready));
               }
             });
}

void CodePreparer::CompileAll(const TenantId& tenant, const std::string& target,
                              std::vector<const wire::Code*> codes, bool later, AllCompiled done) {
  struct Pending {
    std::vector<Module> modules;
    size_t left;
    absl::Status first_error;
    AllCompiled done;
  };
  auto pending = std::make_shared<Pending>();
  pending->modules.resize(codes.size());
  pending->left = codes.size() + 1;
  pending->done = std::move(done);
  auto one_ended = [this, tenant, pending](size_t index, absl::StatusOr<Module> module) {
    TenantTransaction transaction(*core_, tenant);
    pending->first_error.Update(module.status());
    if (module.ok() && index < pending->modules.size())
      pending->modules[index] = *std::move(module);
    if (--pending->left > 0) return;
    pending->done(transaction, std::move(pending->modules), pending->first_error);
  };
  // After the transaction: the compiler may call back at once.
  core_->executor.Run([this, tenant, target, later, one_ended, codes = std::move(codes)] {
    broker::Compiler& compiler = core_->broker->compiler();
    for (size_t i = 0; i < codes.size(); ++i) {
      auto ended = [one_ended, i](absl::StatusOr<Module> module) {
        one_ended(i, std::move(module));
      };
      if (codes[i] == nullptr) {
        ended(Module(nullptr));
      } else if (later) {
        compiler.CompileLater(tenant, target, *codes[i], ended);
      } else {
        compiler.Compile(tenant, target, *codes[i], ended);
      }
    }
    one_ended(codes.size(), Module(nullptr));
  });
}

}  // namespace stride::engine
