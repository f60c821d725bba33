// Turns the code of one thread into that of a block: the steps between Clang and LLVM's vectorizer.
#pragma once

#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "cpucuda/kernel/kernel_table.h"

namespace llvm {
class Module;
}

namespace stride::cpucuda {

// Makes every function except the kernels' entries internal, so that unused ones are removed.
void KeepOnly(llvm::Module& module, const std::vector<CompiledKernel>& kernels);

// Marks every device function that does not call itself for inlining, regardless of the source's
// attributes.
void MarkForInlining(llvm::Module& module, const KernelTable& table);

// After simplification: each entry becomes `void f(BlockContext*)`. UNIMPLEMENTED when a kernel
// cannot be cut.
absl::Status CutKernels(llvm::Module& module, std::optional<ThreadForm> form, KernelTable& table);

}  // namespace stride::cpucuda
