// Cuts a normalised kernel into regions.
#pragma once

#include "absl/status/status.h"
#include "cpucuda/compiler/spmd/kernel_shape.h"

namespace stride::cpucuda::spmd {

// Adds the cuts that make the barriers' cuts work, then fills Shape::regions:
//  - a loop with a cut in it is cut at its header and where it is left, so that threads go round
//  together;
//  - a uniform branch that chooses between regions is taken once, by the block, not by each thread;
//  - where a divergent branch has a cut behind it, its paths meet again at a cut.
// UNIMPLEMENTED for control flow that has no such form.
absl::Status FindRegions(Shape& shape);

}  // namespace stride::cpucuda::spmd
