// Cuts a normalised kernel into regions.
#pragma once

#include "absl/status/status.h"
#include "cpucuda/compiler/spmd/kernel_shape.h"

namespace stride::cpucuda::spmd {

// Adds the cuts that make the barriers' cuts work, then fills Shape::regions:
//  - a loop with a cut in it is cut at its header and at its exits, so that threads run each round
//  together;
//  - a uniform branch that chooses between regions is taken once, by the block, not by each thread;
//  - where a cut follows a divergent branch, the branch's paths meet again at a cut.
// UNIMPLEMENTED for control flow without such a form.
absl::Status FindRegions(Shape& shape);

}  // namespace stride::cpucuda::spmd
