// From one thread's code to a whole block's: the steps between Clang and LLVM's vectoriser.
#pragma once

#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "cpucuda/compiler/compiler.h"
#include "cpucuda/compiler/kernel_table.h"

namespace llvm {
class Module;
}

namespace stride::cpucuda {

// Makes every function but the kernels' entries internal, so that what is not used goes away.
void KeepOnly(llvm::Module& module, const std::vector<CompiledKernel>& kernels);

// Every device function that does not call itself is to be inlined, whatever the source says.
void MarkForInlining(llvm::Module& module, const KernelTable& table);

// After simplification: each entry becomes `void f(BlockContext*)`. UNIMPLEMENTED when a kernel
// cannot be cut.
absl::Status CutKernels(llvm::Module& module, std::optional<ThreadForm> form, KernelTable& table);

}  // namespace stride::cpucuda
