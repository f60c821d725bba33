// LLVM's pipelines around the pass that cuts kernels into loops.
#pragma once

namespace llvm {
class Module;
class TargetMachine;
}  // namespace llvm

namespace stride::cpucuda {

// Inlines the functions marked for inlining, without other optimization.
void InlineMarked(llvm::Module& module, llvm::TargetMachine& machine);

// Inlines and simplifies, so that the kernel is one small function. Makes no vectors, which would
// hide its structure.
void Simplify(llvm::Module& module, llvm::TargetMachine& machine, int optimization);

// The full pipeline, with vectorization.
void Optimize(llvm::Module& module, llvm::TargetMachine& machine, int optimization);

}  // namespace stride::cpucuda
