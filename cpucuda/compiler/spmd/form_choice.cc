#include "cpucuda/compiler/spmd/form_choice.h"

#include "cpucuda/compiler/spmd/kernel_shape.h"
#include "llvm/IR/InstIterator.h"

namespace stride::cpucuda::spmd {
namespace {

bool Calls(const llvm::Function& kernel, llvm::StringRef callee) {
  for (const llvm::Instruction& instruction : llvm::instructions(kernel)) {
    if (CalleeName(instruction) == callee) return true;
  }
  return false;
}

}  // namespace

bool HasWarpOperations(const llvm::Function& kernel) { return Calls(kernel, kWaitWarp); }

bool WaitsForGrid(const llvm::Function& kernel) { return Calls(kernel, kWaitGrid); }

}  // namespace stride::cpucuda::spmd
