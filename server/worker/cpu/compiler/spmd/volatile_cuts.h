// Warp-synchronous code: threads that exchange values through volatile memory and count on their
// warp running in step.
#pragma once

#include "absl/status/status.h"
#include "llvm/IR/Function.h"
#include "llvm/IR/Module.h"

namespace stride::cpu::spmd {

// Before simplification: puts calls around each volatile access of memory that other threads may
// see. They keep LLVM from copying the access into several paths, where threads would no longer
// meet.
void AnchorVolatileAccesses(llvm::Module& module);

// After simplification, in a kernel's entry: takes the anchors away, and cuts with kInStep wherever
// a thread's access could meet another thread's volatile one (or the other way round) with no cut
// between them. Only a kernel with such accesses changes. All lanes of a warp that are on the way
// to a cut are waited for there: a loop with such cuts has one before it and one where it goes
// round, and both forms let those go on first that are deepest in loops, then earliest.
absl::Status CutInStep(llvm::Function& kernel);

// For fibers, in such a kernel: where the ways from a branch meet again, all wait for each other if
// some were to wait on their way. The loop form does so at every cut.
void MeetInStep(llvm::Function& kernel);

// In a function that is not a kernel's own body, which cannot be cut: UNIMPLEMENTED when its
// threads both write and read such memory.
absl::Status RefuseInStep(llvm::Function& function);

}  // namespace stride::cpu::spmd
