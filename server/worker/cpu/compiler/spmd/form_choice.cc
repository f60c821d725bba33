#include "server/worker/cpu/compiler/spmd/form_choice.h"

#include "llvm/IR/InstIterator.h"
#include "server/worker/cpu/compiler/spmd/kernel_shape.h"

namespace stride::cpu::spmd {

FormChoice ChooseForm(const llvm::Function& kernel) {
  for (const llvm::Instruction& instruction : llvm::instructions(kernel)) {
    if (CalleeName(instruction) == kWaitWarp) {
      return {ThreadForm::kPerThread, "it has votes, shuffles or other operations of a warp"};
    }
  }
  return {ThreadForm::kLoops, "its threads meet at nothing but barriers of the block"};
}

}  // namespace stride::cpu::spmd
