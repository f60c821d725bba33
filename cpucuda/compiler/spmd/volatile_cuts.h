// Warp-synchronous code: threads that exchange values through volatile memory and count on their
// warp running in step.
#pragma once

#include "absl/status/status.h"
#include "llvm/IR/Function.h"
#include "llvm/IR/Module.h"

namespace stride::cpucuda::spmd {

// Before simplification: puts calls around each volatile access of memory that other threads may
// see. They keep LLVM from copying the access into several paths, where threads would no longer
// meet.
void AnchorVolatileAccesses(llvm::Module& module);

// After simplification, in a kernel's entry: removes the anchors, and cuts with kInStep wherever a
// thread's access could meet another thread's volatile one (or the reverse) with no cut between
// them. Only a kernel with such accesses changes. A cut waits for all lanes of a warp on the way to
// it. So a loop with such cuts has a cut before it and one at the end of each round. In both forms
// the lanes deepest in loops continue first, then the earliest.
absl::Status CutInStep(llvm::Function& kernel);

// For fibers, in such a kernel: where the paths of a branch join, all lanes wait for each other if
// some lanes had to wait on their path. The loop form does so at every cut.
void MeetInStep(llvm::Function& kernel);

// In a function that is not a kernel's own body, which cannot be cut: UNIMPLEMENTED when its
// threads both write and read such memory.
absl::Status RefuseInStep(llvm::Function& function);

}  // namespace stride::cpucuda::spmd
