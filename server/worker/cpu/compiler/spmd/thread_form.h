// Which kernels may be cut into loops.
#pragma once

#include "llvm/IR/Function.h"

namespace stride::cpu::spmd {

// Whether loops over the block's threads are known to give what the threads themselves would. The
// pass is a compiler, and its failures are silent wrong results: so a kernel is given to it only
// when the differential tests (loops against fibers, over the kernel corpus and its shapes) are
// green for its whole class. That holds for kernels whose threads never wait for each other.
// Barriers, shuffles and votes run as fibers, slower and right, until their classes are green too
// (docs/decisions/0004).
bool LoopsAreProven(const llvm::Function& kernel);

}  // namespace stride::cpu::spmd
