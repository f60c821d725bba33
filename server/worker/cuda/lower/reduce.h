#pragma once

#include "absl/status/status.h"
#include "server/wire/plan.pb.h"
#include "server/worker/cuda/lower/lowering.h"

namespace stride::cuda {

// `loops`: of the block loops, for a launch with `by_blocks`; else null.
absl::Status LowerReduce(const Lowering& lowering, KernelModule& module, KernelModule* loops,
                         const wire::ReduceLaunch& launch);

}  // namespace stride::cuda
