#pragma once

#include "absl/status/status.h"
#include "server/wire/plan.pb.h"
#include "server/worker/cuda/lower/lowering.h"

namespace stride::cuda {

// A client's own kernel. INVALID_ARGUMENT when number or sizes of arguments or globals are not the
// kernel's, or the grid is beyond a limit. `fault` is the codegen::RoutineFault where the kernel
// notes that it waits for the grid although the launch is not cooperative; it may be 0 where the
// module has no grid barrier, or the launch is.
absl::Status LowerKernel(const Lowering& lowering, KernelModule& module,
                         const wire::KernelLaunch& launch, CUdeviceptr fault);

}  // namespace stride::cuda
