#pragma once

#include <cstdint>

#include "server/wire/plan.pb.h"

namespace stride::ops {

// Estimates the device memory that the task takes in addition to its arrays while it runs: copies
// in a library's order, the library's workspace, and the copies between the passes of a sort. The
// workspace is known from LAPACK's manual and from measurements of cuSOLVER. 0 if the task needs
// little or the need is not known: loops, reductions, clients' kernels, programs. The scheduler
// counts it (Memory::TakeScratch); a worker that finds no memory returns RESOURCE_EXHAUSTED
// regardless of the estimate.
uint64_t ScratchBytes(const wire::Task& task);

}  // namespace stride::ops
