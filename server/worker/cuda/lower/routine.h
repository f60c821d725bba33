#pragma once

#include "absl/status/status.h"
#include "server/wire/plan.pb.h"
#include "server/worker/codegen/routine_fault.h"
#include "server/worker/cuda/lower/lowering.h"

namespace stride::cuda {

// `fault`: pinned host memory, zero, to which the device copies a fault of the data; valid once the
// task has ended.
absl::Status LowerRoutine(const Lowering& lowering, KernelModule& module,
                          const wire::RoutineLaunch& launch, codegen::RoutineFault* fault);

}  // namespace stride::cuda
