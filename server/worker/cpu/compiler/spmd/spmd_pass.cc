#include "server/worker/cpu/compiler/spmd/spmd_pass.h"
#include "llvm/IR/Module.h"
#include "llvm/ADT/StringSet.h"
namespace stride::cpu {
void KeepOnly(llvm::Module& module, const std::vector<CompiledKernel>& kernels) {
  llvm::StringSet<> kept;
  for (const CompiledKernel& kernel : kernels) kept.insert(kernel.symbol);
  for (llvm::Function& function : module) {
    if (!function.isDeclaration() && !kept.contains(function.getName())) {
      function.setLinkage(llvm::GlobalValue::InternalLinkage);
    }
  }
}
absl::Status PrepareKernels(llvm::Module& module, KernelTable& table) { return absl::UnimplementedError("kernels"); }
absl::Status CutKernels(llvm::Module& module, ThreadForm form, KernelTable& table) { return absl::UnimplementedError("kernels"); }
}
