// Reads kernels and their parameters from Clang's syntax tree.
#pragma once

#include <string>
#include <vector>

#include "cpucuda/compiler/request.h"
#include "cpucuda/kernel/kernel_table.h"

namespace clang {
class ASTContext;
}

namespace stride::cpucuda {

// Qualified names of the kernels defined in the source, in order; for kNativeLoops, of every extern
// "C" function.
struct KernelNames {
  std::vector<std::string> kernels;    // no templates
  std::vector<std::string> templates;  // without arguments
  std::vector<std::string> variables;  // __device__ and __constant__ ones, templates among them
};
KernelNames ListKernels(clang::ASTContext& context, SourceKind kind);

KernelTable ReadKernels(clang::ASTContext& context, SourceKind kind,
                        const std::vector<std::string>& names,
                        const std::vector<std::string>& globals);

}  // namespace stride::cpucuda
