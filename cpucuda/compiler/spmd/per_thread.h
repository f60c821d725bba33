// The reference form: a kernel as one thread runs it.
#pragma once

#include "absl/status/status.h"
#include "llvm/IR/Function.h"

namespace stride::cpucuda::spmd {

// The entry becomes `void f(BlockContext*)` for the thread that BlockContext::thread_index names; a
// cut calls KernelRuntime::wait. `bytes_per_thread` is the scratch that exchanges between threads
// use.
absl::Status MakePerThread(llvm::Function& function, uint64_t& bytes_per_thread, bool& has_barrier);

}  // namespace stride::cpucuda::spmd
