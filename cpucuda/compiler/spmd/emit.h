// Writes the block's function from its regions.
#pragma once

#include "cpucuda/compiler/spmd/kernel_shape.h"

namespace stride::cpucuda::spmd {

// When control never diverges around a cut, regions follow one another in the source's order.
// Otherwise each thread has a byte with its next region, and the block has the set of regions for
// which threads wait. The region deepest in loops runs first, then the earliest, so that late
// threads catch up before others continue. A region that all threads reach runs without a test of
// the bytes.
void EmitBlockFunction(Shape& shape);

}  // namespace stride::cpucuda::spmd
