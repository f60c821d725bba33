#pragma once

#include "absl/status/status.h"
#include "server/wire/plan.pb.h"
#include "server/worker/cuda/lower/lowering.h"

namespace stride::cuda {

absl::Status LowerElementwise(const Lowering& lowering, KernelModule& module,
                              const wire::ElementwiseLaunch& launch);

}  // namespace stride::cuda
