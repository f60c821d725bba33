#pragma once

#include <vector>

#include "bench/device/libraries.h"
#include "bench/device/routine.h"

namespace stride::bench {

// All rows. `quick`: small arrays. `libraries` outlive the rows, and a row its routine.
std::vector<NamedRoutine> Routines(bool quick, Libraries& libraries);

}  // namespace stride::bench
