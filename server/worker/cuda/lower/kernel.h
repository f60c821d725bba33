#pragma once

#include "absl/status/status.h"
#include "server/wire/plan.pb.h"
#include "server/worker/cuda/lower/lowering.h"

namespace stride::cuda {

// Launches a client's kernel. INVALID_ARGUMENT when number or sizes of arguments or globals differ
// from the kernel's, or the grid exceeds a limit. `fault`: the codegen::RoutineFault where the
// kernel reports a grid synchronization in a launch that is not cooperative; it may be 0 where the
// module has no grid barrier, or the launch is cooperative.
absl::Status LowerKernel(const Lowering& lowering, KernelModule& module,
                         const wire::KernelLaunch& launch, CUdeviceptr fault);

}  // namespace stride::cuda
