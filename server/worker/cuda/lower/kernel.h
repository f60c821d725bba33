#pragma once

#include "absl/status/status.h"
#include "server/wire/plan.pb.h"
#include "server/worker/cuda/lower/lowering.h"

namespace stride::cuda {

// A client's own kernel. INVALID_ARGUMENT when number or sizes of arguments are not the kernel's,
// or the grid is beyond a limit.
absl::Status LowerKernel(const Lowering& lowering, KernelModule& module,
                         const wire::KernelLaunch& launch);

}  // namespace stride::cuda
