// What a thread is running, and how a failing kernel gets out.
#pragma once

#include <setjmp.h>

#include <cstdint>
#include <string>

#include "server/worker/cpu/kernel/launch_limits.h"

namespace stride::cpu {

// The block that this thread runs now; `kernel` is null between launches. Plain fields, so that a
// signal handler on the same thread may read them.
struct RunningBlock {
  const char* kernel = nullptr;
  Dim3 block_index;
};
const RunningBlock& CurrentBlock();

namespace internal {

RunningBlock& MutableCurrentBlock();

// Where a failing kernel jumps to, and the message it leaves. One for each thread of the pool and
// launch.
struct FaultExit {
  jmp_buf landing;
  std::string message;
};

// What KernelRuntime::fail leaves.
std::string DescribeFailure(const char* what, const char* file, unsigned line, const Dim3& block,
                            const unsigned* thread);

}  // namespace internal
}  // namespace stride::cpu
