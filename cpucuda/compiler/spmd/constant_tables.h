// Private arrays that are tables of constants.
#pragma once

#include "llvm/IR/Function.h"

namespace stride::cpucuda::spmd {

// A table that a kernel fills with constants before it looks values up, each element with one value
// only, becomes a constant of the module: its threads neither fill nor keep it. Runs on a
// simplified kernel, whose short loops over private arrays are unrolled.
void FoldConstantTables(llvm::Function& kernel);

}  // namespace stride::cpucuda::spmd
