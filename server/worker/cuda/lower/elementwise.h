#pragma once

#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/wire/plan.pb.h"
#include "server/worker/cuda/lower/emitted.h"
#include "server/worker/cuda/lower/lowering.h"

namespace stride::cuda {

// Nothing, when there is no element.
absl::StatusOr<std::optional<EmittedLaunch>> PrepareElementwise(
    const Lowering& lowering, KernelModule& module, const wire::ElementwiseLaunch& launch);
absl::Status LowerElementwise(const Lowering& lowering, KernelModule& module,
                              const wire::ElementwiseLaunch& launch);

}  // namespace stride::cuda
