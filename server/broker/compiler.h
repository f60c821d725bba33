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

// Compiles code in disposable processes, at most a few at once, and caches the results by content
// in memory and on disk. Code without client text is shared by all tenants. Code with a client's
// text is cached per tenant: the time of a compilation would reveal what other tenants have
// compiled. Thread-safe.
class Compiler {
 public:
  using Done = std::function<void(absl::StatusOr<std::shared_ptr<const CompiledModule>>)>;
  virtual ~Compiler() = default;

  // The module if it is in memory, else nullptr. Starts no process and opens no file.
  virtual std::shared_ptr<const CompiledModule> Lookup(const TenantId& tenant,
                                                       const std::string& target,
                                                       const wire::Code& code) = 0;

  // Precompiled loops that run any elementwise program by blocks on this target (Code.block_loops),
  // or nullptr. They are never compiled here. Starts no process and opens no file.
  virtual std::shared_ptr<const CompiledModule> BlockLoops(const std::string&) { return nullptr; }

  // Whether the product contains this code for the target or a compatible one. Compile then takes
  // the time of reading a file.
  virtual bool IsPrecompiled(const std::string&, const wire::Code&) { return false; }

  // Calls `done` exactly once: at once on this thread when the module is in memory, else on a
  // compiler thread. Equal requests in flight are joined. Up to a limit on concurrent compilations,
  // a tenant waits only for its own code.
  //
  // Errors: INVALID_ARGUMENT when the code is wrong (COMPILE_FAILED, with the log) or lacks a
  // requested kernel (UNKNOWN_ENTRY, metadata `entry`); DEADLINE_EXCEEDED when it took too long;
  // ABORTED when the compiler died.
  virtual void Compile(const TenantId& tenant, const std::string& target, const wire::Code& code,
                       Done done) = 0;

  // The same for code that no caller waits for: it is compiled after the tenant's other requests.
  // UNAVAILABLE at once when too many such jobs of the tenant are pending.
  virtual void CompileLater(const TenantId& tenant, const std::string& target,
                            const wire::Code& code, Done done) {
    Compile(tenant, target, code, std::move(done));
  }
};

}  // namespace stride::broker
