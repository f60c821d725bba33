// `__shared__` variables become offsets into the block's buffer.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "llvm/IR/Module.h"

namespace stride::cpu::spmd {

// Runs before any optimisation: a shared scalar that looks like a private global would be folded
// away. Static variables of all kernels of the module share one layout, whose size is
// `static_bytes`; dynamic ones start where it ends.
absl::Status LowerSharedMemory(llvm::Module& module, const std::vector<std::string>& dynamic_names,
                               uint32_t& static_bytes);

}  // namespace stride::cpu::spmd
