// `__shared__` variables become offsets into the block's buffer.
#pragma once

#include "absl/status/status.h"
#include "cpucuda/kernel/kernel_table.h"
#include "llvm/IR/Module.h"

namespace stride::cpucuda::spmd {

// Fills CompiledKernel::static_shared_bytes. Runs once device functions are inlined, so that each
// kernel's uses are its own, but before any other optimisation: a shared scalar that looks like a
// private global would be folded away. A kernel's static variables come first, its dynamic ones
// start together where those end. Should a function that could not be inlined use any, all kernels
// of the module have one layout.
absl::Status LowerSharedMemory(llvm::Module& module, KernelTable& table);

}  // namespace stride::cpucuda::spmd
