#include "server/worker/codegen/routine_fault.h"

#include "absl/strings/str_cat.h"

namespace stride::codegen {

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
    default:
      return absl::InternalError("a routine noted a fault that this worker does not know");
  }
}

}  // namespace stride::codegen
