// Layout of a thread's private arrays once one function runs a whole block.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "cpucuda/compiler/spmd/kernel_shape.h"

namespace stride::cpucuda::spmd {

// Gives the private arrays whose elements the block's threads visit together, as `sum[i]` of a loop
// over i, the layout [element][thread]. Then neighbours access memory in order, and the loop can
// run all threads in step with vectors. An array qualifies if all its accesses have one size and
// start at multiples of it. Other arrays stay as they are.
void InterleavePrivateArrays(Shape& shape);

// Gives each thread a copy in scratch of the private arrays that have `at_least` so many bytes, in
// the layout [thread][element]. UNIMPLEMENTED for arrays of variable length.
absl::Status MovePrivateArrays(Shape& shape, uint64_t at_least);

}  // namespace stride::cpucuda::spmd
