#pragma once

#include "absl/status/status.h"
#include "server/worker/codegen/launch_abi.h"
#include "server/worker/cuda/lower/lowering.h"

namespace stride::cuda {

// Launches code that our generator emitted: its only parameter is the launch block.
absl::Status LaunchEmitted(const Lowering& lowering, KernelModule& module, const char* entry,
                           const codegen::LaunchShape& shape, codegen::LaunchBlock& block);

}  // namespace stride::cuda
