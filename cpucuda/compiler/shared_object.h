// An LLVM module to an ELF shared object.
#pragma once

#include <string>

#include "absl/status/statusor.h"

namespace llvm {
class Module;
class TargetMachine;
}  // namespace llvm

namespace stride::cpucuda {

// INVALID_ARGUMENT when the code calls a function that exists nowhere.
absl::StatusOr<std::string> MakeSharedObject(llvm::Module& module, llvm::TargetMachine& machine);

}  // namespace stride::cpucuda
