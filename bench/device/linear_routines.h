#pragma once

#include <vector>

#include "bench/device/libraries.h"
#include "bench/device/routine.h"

namespace stride::bench {

// Vectors by matrices, batches of products, and linear systems, as Routines has them.
void AddLinearRoutines(bool quick, Libraries& libraries, std::vector<NamedRoutine>* rows);

}  // namespace stride::bench
