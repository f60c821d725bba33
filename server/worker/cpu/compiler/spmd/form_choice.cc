#include "server/worker/cpu/compiler/spmd/form_choice.h"

#include "llvm/Analysis/LoopInfo.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/InstIterator.h"
#include "server/worker/cpu/compiler/spmd/kernel_shape.h"

namespace stride::cpu::spmd {

FormChoice ChooseForm(const llvm::Function& kernel) {
  llvm::DominatorTree dominators(const_cast<llvm::Function&>(kernel));
  llvm::LoopInfo loops(dominators);
  for (const llvm::Instruction& instruction : llvm::instructions(kernel)) {
    llvm::StringRef name = CalleeName(instruction);
    if (name == kWaitWarp) return {ThreadForm::kPerThread, "it has votes, shuffles or other operations of a warp"};
    bool barrier = name == kCut || name == kSlotClear;
    if (barrier && loops.getLoopDepth(instruction.getParent()) > 0) {
      return {ThreadForm::kPerThread, "it has a barrier in a loop"};
    }
  }
  return {ThreadForm::kLoops, "its threads meet at no barrier, or at barriers outside loops"};
}

}  // namespace stride::cpu::spmd
