// Runs a block's threads as fibers: for kernels whose barriers and warp operations the loop-making
// pass does not take.
#pragma once

#include "absl/status/status.h"
#include "server/worker/cpu/kernel/block_context.h"

namespace stride::cpu {

// KernelRuntime::wait: the calling fiber stops until the other threads of its block (or warp) have
// come as far. Does nothing outside of RunBlockAsFibers.
void WaitInFiber(BlockContext* block, unsigned site, bool whole_block);

// Runs one block of a kernel compiled in per-thread form (CompiledKernel::per_thread). `common` is
// filled in but for thread_index. Fibers live on stacks that the calling thread keeps from block to
// block. A jump out of the kernel (internal::Fail) may leave at any moment. RESOURCE_EXHAUSTED when
// there is no memory for the stacks.
absl::Status RunBlockAsFibers(void (*function)(BlockContext*), const BlockContext& common);

}  // namespace stride::cpu
