#include "cpucuda/runtime/fault.h"

#include "absl/strings/str_cat.h"

namespace stride::cpucuda {
namespace {

thread_local RunningBlock current;

void Set(uint32_t in_kernel, const Dim3& index) {
  current.in_kernel = in_kernel;
  current.block_index = index;
  current.check = current.Check();
}

}  // namespace

namespace internal {

void EnterKernel() { Set(1, {0, 0, 0}); }
void EnterBlock(const Dim3& index) { Set(1, index); }
void LeaveKernel() { Set(0, {0, 0, 0}); }

std::string DescribeFailure(const char* what, const char* file, unsigned line, const Dim3& block,
                            const unsigned* thread) {
  std::string message = what;
  if (line != 0) absl::StrAppend(&message, " at ", file, ":", line);
  absl::StrAppend(&message, ", block (", block.x, ", ", block.y, ", ", block.z, "), thread (",
                  thread[0], ", ", thread[1], ", ", thread[2], ")");
  return message;
}

}  // namespace internal

RunningBlock CurrentBlock() { return current; }

}  // namespace stride::cpucuda
