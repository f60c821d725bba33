// Which of the two forms a kernel gets.
#pragma once

#include "llvm/IR/Function.h"

namespace stride::cpucuda::spmd {

// Of a simplified kernel. The loop form is fast and intricate: a kernel gets it when it is of a
// kind that the differential tests (tests/unit/cpucuda/compiler, tests/fuzz/kernels) hold
// against the per-thread form. With votes, shuffles or other operations of a warp it is of that
// kind only if all threads of the block come to each of them together; only the cut kernel shows
// that.
bool HasWarpOperations(const llvm::Function& kernel);
// Waits for all blocks, which only threads with a stack each can do halfway through a kernel.
bool WaitsForGrid(const llvm::Function& kernel);

inline constexpr char kMeetsAtBarriers[] = "its threads meet at nothing but barriers of the block";
inline constexpr char kMeetsAsGrid[] = "its blocks wait for each other";
inline constexpr char kMeetsTogether[] =
    "its warps' votes and shuffles are reached by the whole block together";
inline constexpr char kMeetsInPart[] =
    "it has votes, shuffles or other operations of a warp that some threads may not reach";

}  // namespace stride::cpucuda::spmd
