// The loops over a block's threads.
#pragma once

#include "cpucuda/compiler/spmd/kernel_shape.h"

namespace stride::cpucuda::spmd {

// for z, for y, for x: { body }. The body's code goes between `body` and `next`; a block of threads
// is never empty.
struct ThreadLoops {
  llvm::BasicBlock* before = nullptr;  // enters the loops
  llvm::BasicBlock* body = nullptr;    // no terminator yet
  llvm::BasicBlock* next = nullptr;    // branch here when a thread is done
  llvm::BasicBlock* after = nullptr;   // no terminator yet
  llvm::Value* thread[4] = {};         // x, y, z, linear, for use in the body
};

// `group`: the accesses that are independent between threads, see llvm.access.group.
ThreadLoops BuildThreadLoops(const Shape& shape, const llvm::Twine& name, llvm::MDNode* group);

}  // namespace stride::cpucuda::spmd
