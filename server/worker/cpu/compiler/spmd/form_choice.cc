#include "server/worker/cpu/compiler/spmd/form_choice.h"

#include "llvm/IR/InstIterator.h"
#include "server/worker/cpu/compiler/spmd/kernel_shape.h"

namespace stride::cpu::spmd {

bool HasWarpOperations(const llvm::Function& kernel) {
  for (const llvm::Instruction& instruction : llvm::instructions(kernel)) {
    if (CalleeName(instruction) == kWaitWarp) return true;
  }
  return false;
}

}  // namespace stride::cpu::spmd
