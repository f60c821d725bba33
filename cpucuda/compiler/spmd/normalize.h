// Brings a simplified kernel into the form that the cutting steps expect.
#pragma once

#include "absl/status/statusor.h"
#include "cpucuda/compiler/spmd/kernel_shape.h"

namespace stride::cpucuda::spmd {

// Replaces the entry `function` by `void f(BlockContext*)` with a prologue that reads the block's
// fields and the kernel's parameters, private arrays moved to scratch, one return, and blocks split
// at every cut. UNIMPLEMENTED with the construct that the pass does not support.
absl::StatusOr<Shape> Normalize(llvm::Function& function);

// The same as Normalize but for private arrays and cuts, which stay as they are.
absl::StatusOr<Shape> NormalizePerThread(llvm::Function& function);

}  // namespace stride::cpucuda::spmd
