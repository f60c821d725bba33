// Which of the two forms a kernel gets.
#pragma once

#include "llvm/IR/Function.h"

namespace stride::cpucuda::spmd {

// For a simplified kernel. The loop form is fast and intricate: only classes of kernels get it that
// differential tests (tests/unit/cpucuda/compiler, tests/fuzz/kernels) compare with the per-thread
// form. A kernel with votes, shuffles or other warp operations belongs to such a class only if all
// threads of the block reach each of them together. Only the cut kernel shows that.
bool HasWarpOperations(const llvm::Function& kernel);
// Whether the kernel waits for all blocks. Such a wait within a kernel needs a stack for each
// thread.
bool WaitsForGrid(const llvm::Function& kernel);

inline constexpr char kMeetsAtBarriers[] = "its threads meet at nothing but barriers of the block";
inline constexpr char kMeetsAsGrid[] = "its blocks wait for each other";
inline constexpr char kMeetsTogether[] =
    "its warps' votes and shuffles are reached by the whole block together";
inline constexpr char kMeetsInPart[] =
    "it has votes, shuffles or other operations of a warp that some threads may not reach";

}  // namespace stride::cpucuda::spmd
