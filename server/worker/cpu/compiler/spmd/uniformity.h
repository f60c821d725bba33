// Which values are the same for all threads of a block.
#pragma once

#include "server/worker/cpu/compiler/spmd/kernel_shape.h"

namespace stride::cpu::spmd {

// Fills Shape::varying and Shape::divergent_branches.
void FindVarying(Shape& shape);

}  // namespace stride::cpu::spmd
