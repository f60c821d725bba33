// Scheduler: the code of programs that run as one task, in either tier.
#include <functional>
#include <utility>

#include "server/scheduler/first_tier.h"
#include "server/scheduler/hazards.h"
#include "server/scheduler/replay.h"
#include "server/scheduler/scheduler.h"
#include "server/scheduler/task.h"

namespace stride::scheduler {

using Module = std::shared_ptr<const broker::CompiledModule>;

// Whether the code of all steps is available for the device's target. The first task without it
// requests it from the compiler.
bool Scheduler::HaveReplay(TenantTransaction& transaction, const std::shared_ptr<Task>& task) {
  const std::string& target = task->lane->description.target();
  if (auto found = task->replay->ready.find(target); found != task->replay->ready.end()) {
    NoteReplayByBlocks(*task, target, found->second->elements_by_blocks);
    return TakeReplay(transaction, task, found->second);
  }
  if (std::exchange(task->compile_requested, true)) return false;
  task->compile_start = core_->Now();
  auto tier = std::make_shared<const ReplayTier>(TierOf(*task, target));
  const std::vector<wire::Code>& codes = task->replay->graph.codes;
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
               task->compile_requested = false;
               task->compile_end = core_->Now();
               if (task->state != TaskState::kPreparing) return;
               for (size_t i = 0; i < modules.size(); ++i) {
                 if (modules[i] == nullptr) modules[i] = tier->loops;
               }
               absl::StatusOr<Replay::Ready> ready =
                   error.ok() ? MakeReady(task->replay->graph, std::move(modules), *tier)
                              : absl::StatusOr<Replay::Ready>(error);
               if (!ready.ok()) {
                 EndUnrun(transaction, task, ready.status());
                 return;
               }
               task->replay->ready[target] =
                   std::make_shared<const Replay::Ready>(*std::move(ready));
               Prepare(transaction, task);
             });
  return false;
}

bool Scheduler::TakeReplay(TenantTransaction& transaction, const std::shared_ptr<Task>& task,
                           std::shared_ptr<const Replay::Ready> ready) {
  task->ready = std::move(ready);
  // Until now every array argument of a kernel counted as written.
  for (size_t i = 0; i < task->ready->written.size(); ++i)
    task->uses[i].write = task->ready->written[i];
  if (!WritesHeld(*task)) return true;
  EndUnrun(transaction, task, WritesInputOfBody(*task));
  return false;
}

// A step runs by blocks unless its code was compiled before, here or with the product.
ReplayTier Scheduler::TierOf(const Task& task, const std::string& target) const {
  broker::Compiler& compiler = core_->broker->compiler();
  ReplayTier tier{compiler.BlockLoops(target), {}};
  if (tier.loops == nullptr) return tier;
  const ops::ProgramGraph& graph = task.replay->graph;
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
void Scheduler::NoteReplayByBlocks(const Task& task, const std::string& target, int64_t elements) {
  if (elements == 0) return;
  Replay::ByBlocks& known = task.replay->by_blocks[target];
  known.elements += elements;
  if (known.elements < kElementsWorthCode || std::exchange(known.requested, true)) return;
  std::vector<const wire::Code*> wanted;
  for (const wire::Code& code : task.replay->graph.codes) wanted.push_back(&code);
  CompileAll(task.tenant, target, std::move(wanted), /*later=*/true,
             [replay = task.replay, target](TenantTransaction&, std::vector<Module> modules,
                                            absl::Status error) {
               if (absl::IsUnavailable(error)) {  // too many compilations are pending: try later
                 replay->by_blocks[target] = {};
               } else if (error.ok()) {
                 auto ready = MakeReady(replay->graph, std::move(modules), ReplayTier());
                 if (!ready.ok())
                   return;  // an error of a kernel, which the first tier has reported too
                 replay->ready[target] = std::make_shared<const Replay::Ready>(*std::move(ready));
               }
             });
}

void Scheduler::CompileAll(const TenantId& tenant, const std::string& target,
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

}  // namespace stride::scheduler
