#include "server/worker/codegen/routine_fault.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "server/base/error.h"

namespace stride::codegen {
namespace {

// Position in a batch; empty for one matrix.
std::string Place(const RoutineFault& fault) {
  if (fault.limit <= 1) return "";
  const int64_t matrix = 0x7fffffff - (fault.value >> 32);
  return absl::StrCat(". Matrix of the batch, from 0: ", matrix);
}

int64_t Row(const RoutineFault& fault) { return (fault.value & 0xffffffff) - 1; }

absl::Status NoResult(const std::string& text) {
  return MakeError(absl::StatusCode::kOutOfRange, v1::ERROR_REASON_LINEAR_ALGEBRA, text);
}

}  // namespace

absl::Status ToStatus(const RoutineFault& fault) {
  switch (fault.kind) {
    case RoutineFault::kNone:
      return absl::OkStatus();
    case RoutineFault::kIndexOutOfRange:
      return absl::OutOfRangeError(
          absl::StrCat("an index is out of range of its axis. Index: ", fault.value,
                       ", elements along the axis: ", fault.limit));
    case RoutineFault::kWrongCount:
      return absl::OutOfRangeError(
          absl::StrCat("`count` is not the number of elements that are set. Set: ", fault.value,
                       ", count: ", fault.limit));
    case RoutineFault::kSingular:
      return NoResult(absl::StrCat(
          "the matrix is singular. Elimination found no pivot in column, from 0: ", Row(fault),
          Place(fault)));
    case RoutineFault::kNotPositiveDefinite:
      return NoResult(absl::StrCat(
          "the matrix is not positive definite. Order of the first leading minor that is not: ",
          Row(fault) + 1, Place(fault)));
    case RoutineFault::kNotConverged:
      return NoResult(
          absl::StrCat("eigenvalues or singular values did not converge; does the matrix hold "
                       "infinities or NaN?",
                       Place(fault)));
    case RoutineFault::kNoGrid:
      return absl::FailedPreconditionError(
          "this_grid().sync() in a launch that is not cooperative");
    default:
      return absl::InternalError("a routine noted a fault that this worker does not know");
  }
}

}  // namespace stride::codegen
