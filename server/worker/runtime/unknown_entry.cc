#include "server/worker/runtime/unknown_entry.h"

#include <algorithm>

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace stride::worker {
namespace {

constexpr char kEntryPayload[] = "stride.worker/unknown_entry";
constexpr size_t kMaxNames = 50;  // told; a source may define thousands

}  // namespace

absl::Status UnknownEntry(const std::string& entry, const std::vector<std::string>& known) {
  size_t shown = std::min(known.size(), kMaxNames);
  std::string names = absl::StrJoin(known.begin(), known.begin() + shown, ", ");
  if (shown < known.size()) absl::StrAppend(&names, " and ", known.size() - shown, " more");
  absl::Status status = absl::NotFoundError(
      absl::StrCat("no __global__ function is called `", entry,
                   "`. The code has: ", names.empty() ? std::string("none") : names));
  status.SetPayload(kEntryPayload, absl::Cord(entry));
  return status;
}

std::string UnknownEntryOf(const absl::Status& status) {
  auto payload = status.GetPayload(kEntryPayload);
  return payload.has_value() ? std::string(*payload) : std::string();
}

}  // namespace stride::worker
