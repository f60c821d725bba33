// Which of the two forms a kernel gets.
#pragma once

#include "llvm/IR/Function.h"
#include "server/worker/cpu/compiler/compiler.h"

namespace stride::cpu::spmd {

struct FormChoice {
  ThreadForm form = ThreadForm::kLoops;
  const char* reason = "";
};

// Of a simplified kernel. The loop form is fast and intricate: a kernel gets it when it is of a
// kind that the differential tests (tests/unit/worker/cpu/compiler) hold against the per-thread
// form. Every other kernel gets the per-thread form.
FormChoice ChooseForm(const llvm::Function& kernel);

}  // namespace stride::cpu::spmd
