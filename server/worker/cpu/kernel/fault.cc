#include "server/worker/cpu/kernel/fault.h"

#include "absl/strings/str_cat.h"

namespace stride::cpu {
namespace internal {

RunningBlock& MutableCurrentBlock() {
  static thread_local RunningBlock block;
  return block;
}

void Fail(FaultExit& exit, const char* what, const char* file, unsigned line, const Dim3& block,
          const unsigned* thread) {
  exit.message = what;
  if (line != 0) absl::StrAppend(&exit.message, " at ", file, ":", line);
  absl::StrAppend(&exit.message, ", block (", block.x, ", ", block.y, ", ", block.z, "), thread (",
                  thread[0], ", ", thread[1], ", ", thread[2], ")");
  // Compiled kernels have no destructors and hold no locks, so leaving them this way loses nothing.
  longjmp(exit.landing, 1);
}

}  // namespace internal

const RunningBlock& CurrentBlock() { return internal::MutableCurrentBlock(); }

}  // namespace stride::cpu
