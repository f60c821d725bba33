#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "server/base/ids.h"
#include "server/broker/compiled_module.h"
#include "server/wire/plan.pb.h"

namespace stride::broker {

// Compiles code in disposable processes, at most a few at once, and remembers the results by
// content in memory and on disk. Code that the daemon wrote alone is shared by all tenants. Code
// that holds a client's text is kept for each tenant by itself: how long a compilation takes would
// show a tenant what others have compiled. Thread-safe.
class Compiler {
 public:
  using Done = std::function<void(absl::StatusOr<std::shared_ptr<const CompiledModule>>)>;
  virtual ~Compiler() = default;

  // The module if it is in memory: no process, no file. nullptr otherwise.
  virtual std::shared_ptr<const CompiledModule> Lookup(const TenantId& tenant,
                                                       const std::string& target,
                                                       const wire::Code& code) = 0;

  // The loops that run any elementwise program by blocks on this target (Code.block_loops), where
  // the product has them: they are never compiled here. nullptr otherwise. No process, no file.
  virtual std::shared_ptr<const CompiledModule> BlockLoops(const std::string&) { return nullptr; }

  // Whether the code was compiled with the product, for this target or one whose code it runs:
  // Compile then takes the time of reading a file.
  virtual bool IsPrecompiled(const std::string&, const wire::Code&) { return false; }

  // `done` is called exactly once: at once on this thread when the module is in memory, else on a
  // compiler thread. Equal requests under way are joined; otherwise each tenant waits for its own
  // alone, as long as not too many ask at once. INVALID_ARGUMENT (COMPILE_FAILED, with
  // the log) when the code is wrong, or (UNKNOWN_ENTRY, metadata `entry`) when it lacks a kernel
  // that was asked for; DEADLINE_EXCEEDED when it took too long; ABORTED when the
  // compiler died.
  virtual void Compile(const TenantId& tenant, const std::string& target, const wire::Code& code,
                       Done done) = 0;

  // The same for code that nothing waits for: it comes after all that the tenant waits for, and is
  // not compiled, UNAVAILABLE at once, where much of the tenant's is to be compiled already.
  virtual void CompileLater(const TenantId& tenant, const std::string& target,
                            const wire::Code& code, Done done) {
    Compile(tenant, target, code, std::move(done));
  }
};

}  // namespace stride::broker
