// The block that a thread runs, and the exit of a failing kernel.
#pragma once

#include <setjmp.h>

#include <cstdint>
#include <string>

#include "cpucuda/runtime/launch_limits.h"

namespace stride::cpucuda {

// Whether this thread is in a kernel, and in which block. For a signal handler on the same thread.
// A kernel may have overwritten the numbers; then they do not match `check`.
struct RunningBlock {
  static constexpr uint32_t kNowhere = 0x9e3779b9;
  uint32_t in_kernel = 0;
  Dim3 block_index = {0, 0, 0};
  uint32_t check = kNowhere;  // checksum of the members above

  uint32_t Check() const {
    return (in_kernel + kNowhere) ^ block_index.x ^ (block_index.y << 11 | block_index.y >> 21) ^
           (block_index.z << 22 | block_index.z >> 10);
  }
  bool intact() const { return check == Check(); }
};
RunningBlock CurrentBlock();

namespace internal {

void EnterKernel();
void EnterBlock(const Dim3& index);
void LeaveKernel();

// The jump target of a failing kernel, and its message. One for each thread of the pool and launch.
struct FaultExit {
  jmp_buf landing;
  std::string message;
};

// The message of KernelRuntime::fail.
std::string DescribeFailure(const char* what, const char* file, unsigned line, const Dim3& block,
                            const unsigned* thread);

}  // namespace internal
}  // namespace stride::cpucuda
