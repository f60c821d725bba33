#pragma once

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/worker/codegen/launch_abi.h"
#include "server/worker/cuda/lower/lowering.h"

namespace stride::cuda {

// Launches code that our generator emitted: its only parameter is the launch block.
absl::Status LaunchEmitted(const Lowering& lowering, KernelModule& module, const char* entry,
                           const codegen::LaunchShape& shape, codegen::LaunchBlock& block);

// A launch of code that takes an EndMark, checked and ready. The kernel is the module's.
struct EmittedLaunch {
  Kernel* kernel = nullptr;
  Grid grid;
  codegen::LaunchBlock block;
  codegen::EndMark mark;
  bool marks() const { return mark.word != 0; }
};

// For a task's only launch: it tells of the task's end, where that is asked for, when it has few
// blocks.
absl::StatusOr<EmittedLaunch> PrepareEmitted(const Lowering& lowering, KernelModule& module,
                                             const char* entry, const codegen::LaunchShape& shape,
                                             codegen::LaunchBlock block);
// One that marks has told of the end once it is launched: the caller notes that.
absl::Status LaunchPrepared(const Driver& driver, CUstream stream, EmittedLaunch& launch);

}  // namespace stride::cuda
