// Finds values that are equal for all threads of a block.
#pragma once

#include "cpucuda/compiler/spmd/kernel_shape.h"

namespace stride::cpucuda::spmd {

// Fills Shape::varying and Shape::divergent_branches.
void FindVarying(Shape& shape);

}  // namespace stride::cpucuda::spmd
