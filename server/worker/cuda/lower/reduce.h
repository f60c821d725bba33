#pragma once

#include "absl/status/status.h"
#include "server/wire/plan.pb.h"
#include "server/worker/cuda/lower/lowering.h"

namespace stride::cuda {

absl::Status LowerReduce(const Lowering& lowering, KernelModule& module,
                         const wire::ReduceLaunch& launch);

}  // namespace stride::cuda
