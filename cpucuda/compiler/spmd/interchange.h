// Loops that should run all threads in step although they hold no barrier.
#pragma once

#include "cpucuda/compiler/spmd/kernel_shape.h"
#include "llvm/Analysis/LoopInfo.h"

namespace stride::cpucuda::spmd {

// True when neighbouring threads touch neighbouring elements in each round of the loop: running the
// threads inside the loop then reads memory in order and makes vectors, where the loop inside each
// thread would stride through memory.
bool WantsInterchange(const llvm::Loop& loop, const Shape& shape);

}  // namespace stride::cpucuda::spmd
