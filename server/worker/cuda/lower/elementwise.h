#pragma once

#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "server/wire/plan.pb.h"
#include "server/worker/cuda/lower/emitted.h"
#include "server/worker/cuda/lower/lowering.h"

namespace stride::cuda {

// A launch of the block loops' module, for a launch with `by_blocks`.
absl::StatusOr<EmittedLaunch> PrepareByBlocks(const Lowering& lowering, KernelModule& loops,
                                              const wire::ElementwiseLaunch& launch,
                                              absl::Span<const uint64_t> addresses);
// nullopt when there is no element.
absl::StatusOr<std::optional<EmittedLaunch>> PrepareElementwise(
    const Lowering& lowering, KernelModule& module, const wire::ElementwiseLaunch& launch);
absl::Status LowerElementwise(const Lowering& lowering, KernelModule& module,
                              const wire::ElementwiseLaunch& launch);

}  // namespace stride::cuda
