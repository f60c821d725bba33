// Loop counters with a start of each thread and a step that is equal for all threads, as `i` of
// `for (i = start(thread); i < n; i += step)`.
#pragma once

#include "cpucuda/compiler/spmd/kernel_shape.h"
#include "llvm/Analysis/LoopInfo.h"

namespace stride::cpucuda::spmd {

// Replaces each such counter of a loop that will be cut by a sum: its start, a cheap function of
// the thread, and an offset that the whole block shares. So the vectorizer still sees that
// neighbouring threads have neighbouring addresses. A counter read from a slot would hide that.
void SplitCounters(const llvm::Loop& loop, Shape& shape);

}  // namespace stride::cpucuda::spmd
