#include "server/worker/cpu/compiler/spmd/thread_form.h"

#include "llvm/IR/InstIterator.h"
#include "server/worker/cpu/compiler/spmd/kernel_shape.h"

namespace stride::cpu::spmd {

bool LoopsAreProven(const llvm::Function& kernel) {
  for (const llvm::Instruction& instruction : llvm::instructions(kernel)) {
    llvm::StringRef name = CalleeName(instruction);
    if (name == kCut || name == kSlot || name == kSlotClear) return false;
  }
  return true;
}

}  // namespace stride::cpu::spmd
