// Clang as a library: source text to an LLVM module. Every file Clang sees is in memory.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/worker/cpu/compiler/compiler.h"
#include "server/worker/cpu/compiler/kernel_table.h"
#include "server/worker/cpu/compiler/options.h"
#include "server/worker/cpu/compiler/target.h"

namespace llvm {
class LLVMContext;
class Module;
}  // namespace llvm

namespace stride::cpu {

struct FrontEndResult {
  std::unique_ptr<llvm::Module> module;
  KernelTable table;
  std::string log;
};

absl::StatusOr<FrontEndResult> RunFrontEnd(const CompileRequest& request, const Options& options,
                                           const Target& target, llvm::LLVMContext& context);

}  // namespace stride::cpu
