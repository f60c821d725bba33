#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cpucuda/cpucuda.h"
#include "server/wire/worker.pb.h"
#include "server/worker/cpu/lower/module_globals.h"

namespace stride::cpu {

// A compiled object, loaded into this process, and the compiler's description of its kernels.
// Immutable except for the content of its variables.
class LoadedModule {
 public:
  static absl::StatusOr<std::shared_ptr<const LoadedModule>> Load(
      int fd, const wire::ModuleDescription& description);

  // A generated loop by its name; nullptr when the module has none of this name.
  using Loop = void (*)(const void* launch, long long begin, long long end);
  Loop FindLoop(const std::string& name) const;
  // The same for block loops (codegen/emit.h): elements [0, n) of up to three arguments.
  using BlockLoop = void (*)(const void* a, const void* b, const void* c, void* out, long long n);
  BlockLoop FindBlockLoop(const std::string& name) const;

  struct Kernel {
    wire::KernelDescription description;
    cpucuda::KernelEntry entry;
  };
  // By the name in the compilation request; nullptr when there is none.
  const Kernel* FindKernel(const std::string& entry) const;
  // Variables that launches set. The thread that runs launches owns their content.
  ModuleGlobals& globals() const { return *globals_; }
  wire::ModuleLoaded Attributes() const;

 private:
  LoadedModule() = default;
  std::unique_ptr<cpucuda::Module> module_;
  std::vector<Kernel> kernels_;
  std::unique_ptr<ModuleGlobals> globals_;
};

}  // namespace stride::cpu
