#include "server/base/unknown_entry.h"

#include <algorithm>

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace stride {
namespace {

constexpr char kEntryPayload[] = "stride.worker/unknown_entry";
constexpr size_t kMaxNames = 50;  // limit of the text; a source may define thousands

std::string Shown(const std::vector<std::string>& known) {
  if (known.empty()) return "none";
  size_t shown = std::min(known.size(), kMaxNames);
  std::string names = absl::StrJoin(known.begin(), known.begin() + shown, ", ");
  if (shown < known.size()) absl::StrAppend(&names, " and ", known.size() - shown, " more");
  return names;
}

absl::Status NotThere(const std::string& text, const std::string& payload) {
  absl::Status status = absl::NotFoundError(text);
  status.SetPayload(kEntryPayload, absl::Cord(payload));
  return status;
}

}  // namespace

absl::Status UnknownEntry(const std::string& entry, const std::vector<std::string>& known) {
  return NotThere(
      absl::StrCat("no __global__ function is called `", entry, "`. The code has: ", Shown(known)),
      entry);
}

absl::Status UnknownGlobal(const std::string& name, const std::vector<std::string>& known) {
  return NotThere(absl::StrCat("no __constant__ or __device__ variable is called `", name,
                               "`. The code has: ", Shown(known)),
                  absl::StrCat("&", name));
}

std::string UnknownEntryOf(const absl::Status& status) {
  auto payload = status.GetPayload(kEntryPayload);
  return payload.has_value() ? std::string(*payload) : std::string();
}

}  // namespace stride
