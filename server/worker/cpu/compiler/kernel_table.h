// Reads kernels and their parameters from Clang's syntax tree.
#pragma once

#include <string>
#include <vector>

#include "server/worker/cpu/compiler/compiler.h"

namespace clang {
class ASTContext;
}

namespace stride::cpu {

struct KernelTable {
  std::vector<CompiledKernel> kernels;      // one for each entry asked for
  std::vector<std::string> dynamic_shared;  // names of `extern __shared__` variables
  std::string unsupported;                  // first feature found that this device lacks
  std::string error;                        // user's mistake
};

// Qualified names of every non-template kernel defined in the source, in order; for kNativeLoops,
// of every extern "C" function.
std::vector<std::string> ListKernels(clang::ASTContext& context, SourceKind kind);

KernelTable ReadKernels(clang::ASTContext& context, SourceKind kind,
                        const std::vector<std::string>& names);

}  // namespace stride::cpu
