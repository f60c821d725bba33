#pragma once

#include <cstdint>

#include "server/wire/plan.pb.h"

namespace stride::ops {

// About how much memory of its device the task takes beside its arrays while it runs: copies in a
// library's order, which are known, and a library's work memory, which is known by what LAPACK's
// manual says and by what was measured of cuSOLVER. 0 for what needs little or is not known: loops,
// reductions, clients' kernels, programs. The scheduler counts it (Memory::TakeScratch); a worker
// that finds no memory answers RESOURCE_EXHAUSTED whatever was counted.
uint64_t ScratchBytes(const wire::Task& task);

}  // namespace stride::ops
