#include "server/worker/cpu/kernel/fault.h"

#include "absl/strings/str_cat.h"

namespace stride::cpu {
namespace internal {

RunningBlock& MutableCurrentBlock() {
  static thread_local RunningBlock block;
  return block;
}

std::string DescribeFailure(const char* what, const char* file, unsigned line, const Dim3& block,
                            const unsigned* thread) {
  std::string message = what;
  if (line != 0) absl::StrAppend(&message, " at ", file, ":", line);
  absl::StrAppend(&message, ", block (", block.x, ", ", block.y, ", ", block.z, "), thread (",
                  thread[0], ", ", thread[1], ", ", thread[2], ")");
  return message;
}

}  // namespace internal

const RunningBlock& CurrentBlock() { return internal::MutableCurrentBlock(); }

}  // namespace stride::cpu
