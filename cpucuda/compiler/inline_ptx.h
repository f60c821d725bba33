// Inline PTX of kernels as LLVM instructions.
#pragma once

#include "absl/status/status.h"
#include "llvm/IR/Module.h"

namespace stride::cpucuda {

// Replaces every inline assembly statement in `module` by what its PTX does on this device: an
// empty one, special registers, arithmetic, conversions, loads, stores, atomics and barriers.
// UNIMPLEMENTED with the first instruction that is none of these. No inline assembly is left in
// the module when this succeeds, so a client's text never becomes machine instructions.
absl::Status LowerInlinePtx(llvm::Module& module);

}  // namespace stride::cpucuda
