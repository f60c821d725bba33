// Makes the variables that launches set visible to the process that loads the object.
#pragma once

#include "absl/status/status.h"
#include "cpucuda/compiler/kernel_table.h"

namespace llvm {
class Module;
}

namespace stride::cpucuda {

// Before any optimization, which could otherwise take what a variable begins with for what it
// always is. Fills in the symbols of `table`'s globals.
absl::Status ExportGlobals(llvm::Module& module, KernelTable& table);

}  // namespace stride::cpucuda
