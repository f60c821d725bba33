// Writes the block's function from its regions.
#pragma once

#include "cpucuda/compiler/spmd/kernel_shape.h"

namespace stride::cpucuda::spmd {

// When control never diverges around a cut, regions follow one another as the source says.
// Otherwise each thread has a byte that names its next region and the block has a set of regions
// somebody waits for: the deepest in loops is run first, then the earliest, so that threads that
// fell behind catch up before others go on. A region that all threads are in runs without looking
// at the bytes.
void EmitBlockFunction(Shape& shape);

}  // namespace stride::cpucuda::spmd
