#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "server/broker/compiled_module.h"
#include "server/engine/core/core.h"
#include "server/engine/core/first_tier.h"
#include "server/engine/core/program_launch.h"
#include "server/engine/core/task.h"
#include "server/engine/core/task_events.h"

namespace stride::engine {

// The code of a placed task, for the target of its device, and a kernel's arguments, which are
// bound when its code is known. An operation without code runs by blocks at first: on loops that
// are compiled with the product (docs/decisions/0041).
class CodePreparer {
 public:
  CodePreparer(Core* core, TaskEvents* events) : core_(core), events_(events) {}

  // Whether the task has its code and its arguments. False: it has ended with an error, or a
  // compilation ends with a call of TaskEvents::Prepare.
  bool Have(TenantTransaction& transaction, const std::shared_ptr<Task>& task);

 private:
  using Module = std::shared_ptr<const broker::CompiledModule>;
  bool HaveCode(TenantTransaction& transaction, const std::shared_ptr<Task>& task);
  Module BlockLoopsFor(const Task& task, const std::string& target);
  bool HasPlainReduction(const FirstTier& tier, const std::string& target) const;
  bool RunByBlocks(Task& task, Module loops, const std::string& target, PlannedCode& code);
  void NoteRunByBlocks(Task& task, Module loops, const std::string& target);
  bool HaveArguments(TenantTransaction& transaction, const std::shared_ptr<Task>& task);

  // A program that runs as one task.
  bool HaveCompiledProgram(TenantTransaction& transaction, const std::shared_ptr<Task>& task);
  bool TakeProgramLaunch(TenantTransaction& transaction, const std::shared_ptr<Task>& task,
                         std::shared_ptr<const CompiledProgram> ready);
  LaunchTier TierOf(const Task& task, const std::string& target) const;
  void NoteLaunchByBlocks(const Task& task, const std::string& target, int64_t elements);
  // Calls `done` once, in a transaction of the tenant, when all have ended: the modules, null where
  // `codes` has null, or the first error. `later`: nothing waits for them. `done` keeps the codes.
  using AllCompiled = std::function<void(TenantTransaction&, std::vector<Module>, absl::Status)>;
  void CompileAll(const TenantId& tenant, const std::string& target,
                  std::vector<const wire::Code*> codes, bool later, AllCompiled done);

  Core* const core_;
  TaskEvents* const events_;
};

}  // namespace stride::engine
