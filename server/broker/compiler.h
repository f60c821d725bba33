#pragma once

#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "server/base/ids.h"
#include "server/broker/compiled_module.h"
#include "server/wire/plan.pb.h"

namespace stride::broker {

// Compiles code in disposable processes, at most a few at once, and remembers the results by
// content in memory and on disk. Thread-safe.
class Compiler {
 public:
  using Done = std::function<void(absl::StatusOr<std::shared_ptr<const CompiledModule>>)>;
  virtual ~Compiler() = default;

  // The module if it is in memory: no process, no file. nullptr otherwise.
  virtual std::shared_ptr<const CompiledModule> Lookup(const std::string& target,
                                                       const wire::Code& code) = 0;

  // `done` is called exactly once: at once on this thread when the module is in memory, else on a
  // compiler thread. Equal requests under way are joined; otherwise each tenant waits for its own
  // alone, as long as not too many ask at once. INVALID_ARGUMENT (COMPILE_FAILED, with
  // the log) when the code is wrong, or (UNKNOWN_ENTRY, metadata `entry`) when it lacks a kernel
  // that was asked for; DEADLINE_EXCEEDED when it took too long; ABORTED when the
  // compiler died.
  virtual void Compile(const TenantId& tenant, const std::string& target, const wire::Code& code,
                       Done done) = 0;
};

}  // namespace stride::broker
