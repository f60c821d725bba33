#pragma once

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/worker/codegen/launch_abi.h"
#include "server/worker/cuda/lower/lowering.h"

namespace stride::cuda {

// Launches generated code: its only parameter is the launch block.
absl::Status LaunchEmitted(const Lowering& lowering, KernelModule& module, const char* entry,
                           const codegen::LaunchShape& shape, codegen::LaunchBlock& block);

// A checked launch of code that takes an EndMark. The kernel belongs to the module.
struct EmittedLaunch {
  Kernel* kernel = nullptr;
  Grid grid;
  codegen::LaunchBlock block;
  codegen::EndMark mark;
  bool marks() const { return mark.word != 0; }
};

// For a task's only launch: with few blocks the launch itself writes the task's end mark, if
// `lowering.end` requests one.
absl::StatusOr<EmittedLaunch> PrepareEmitted(const Lowering& lowering, KernelModule& module,
                                             const char* entry, const codegen::LaunchShape& shape,
                                             codegen::LaunchBlock block);
// Launches it. If it writes the end mark, the caller must record that in TaskEnd.
absl::Status LaunchPrepared(const Driver& driver, CUstream stream, EmittedLaunch& launch);

}  // namespace stride::cuda
