// Clang as a library: source text to an LLVM module. Every file Clang sees is in memory.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cpucuda/compiler/options.h"
#include "cpucuda/compiler/request.h"
#include "cpucuda/compiler/target.h"
#include "cpucuda/kernel/kernel_table.h"

namespace llvm {
class LLVMContext;
class Module;
}  // namespace llvm

namespace stride::cpucuda {

struct FrontEndResult {
  std::unique_ptr<llvm::Module> module;
  KernelTable table;
  std::string log;
};

absl::StatusOr<FrontEndResult> RunFrontEnd(const CompileRequest& request, const Options& options,
                                           const Target& target, llvm::LLVMContext& context);

}  // namespace stride::cpucuda
