// Counters that start at the thread's own place and move by the same step in every thread, as `i`
// of `for (i = start(thread); i < n; i += step)`.
#pragma once

#include "cpucuda/compiler/spmd/kernel_shape.h"
#include "llvm/Analysis/LoopInfo.h"

namespace stride::cpucuda::spmd {

// Makes each such counter of a loop that will be cut the sum of its start, a cheap function of the
// thread, and an offset that the whole block shares. An address made of the sum still is that of
// the neighbour's element, which the vectoriser could not know of a counter read from a slot.
void SplitCounters(const llvm::Loop& loop, Shape& shape);

}  // namespace stride::cpucuda::spmd
