#include "server/worker/cpu/lower/lowering.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace stride::cpu {

absl::StatusOr<Work> Lower(const LoweringContext& context, const wire::Task& task) {
  switch (task.kind_case()) {
    case wire::Task::kElementwise:
      return LowerElementwise(context, task.elementwise());
    case wire::Task::kReduce:
      return LowerReduce(context, task.reduce());
    case wire::Task::kMatmul:
      return LowerMatmul(context, task.matmul());
    case wire::Task::kKernel:
      return LowerKernel(context, task.kernel());
    case wire::Task::kRoutine:
      return LowerRoutine(context, task.routine());
    case wire::Task::kLinalg:
      return LowerLinalg(context, task.linalg());
    case wire::Task::kFft:
      return LowerFft(context, task.fft());
    case wire::Task::kZeroFill:
      return LowerZeroFill(context, task.zero_fill());
    case wire::Task::kCopyBytes:
      return LowerCopyBytes(context, task.copy_bytes());
    case wire::Task::kGraph:
    case wire::Task::KIND_NOT_SET:
      break;
  }
  return absl::UnimplementedError("the CPU device does not know this kind of task");
}

absl::StatusOr<std::shared_ptr<const LoadedModule>> FindModule(const LoweringContext& context,
                                                               uint64_t module) {
  auto found = context.modules->find(module);
  if (found != context.modules->end()) return found->second;
  return absl::InternalError(absl::StrCat("module ", module, " is not loaded"));
}

absl::StatusOr<int64_t> NumElements(absl::Span<const int64_t> extents) {
  int64_t count = 1;
  bool empty = false;
  for (int64_t extent : extents) {
    if (extent < 0) return absl::InternalError("a loop has a negative extent");
    empty |= extent == 0;
    if (!empty && __builtin_mul_overflow(count, extent, &count)) {
      return absl::InternalError("a loop has too many elements");
    }
  }
  return empty ? 0 : count;
}

int64_t GrainFor(int64_t count, int64_t least, int num_threads) {
  // Four pieces per thread compensate for other work on the machine.
  int64_t grain = std::max(least, count / (int64_t{num_threads} * 4) + 1);
  return (grain + 63) / 64 * 64;  // whole vectors
}

Work NoWork() {
  return {[] { return absl::OkStatus(); }, {}};
}

}  // namespace stride::cpu
