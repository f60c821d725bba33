// Makes the variables that launches set visible to the process that loads the object.
#pragma once

#include "absl/status/status.h"
#include "cpucuda/kernel/kernel_table.h"

namespace llvm {
class Module;
}

namespace stride::cpucuda {

// Call it before any optimization, which could otherwise treat a variable's initial value as a
// constant. Sets the symbols of `table`'s globals.
absl::Status ExportGlobals(llvm::Module& module, KernelTable& table);

}  // namespace stride::cpucuda
