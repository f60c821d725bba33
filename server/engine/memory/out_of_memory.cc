#include "server/engine/memory/out_of_memory.h"

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "server/base/error.h"

namespace stride::engine {

absl::Status OutOfMemory(const std::string& device, uint64_t size, uint64_t limit,
                         uint64_t scratch) {
  const ErrorMetadata metadata = {{"device", absl::StrCat("devices/", device)},
                                  {"bytes", absl::StrCat(size)},
                                  {"limit", absl::StrCat(limit)}};
  const char* what = scratch > 0 ? "this array and the operation's workspace" : "this array";
  const std::string sizes = absl::StrCat("Needed: ", size, " bytes, limit: ", limit, " bytes");
  if (size > limit) {
    return MakeError(absl::StatusCode::kResourceExhausted, v1::ERROR_REASON_DEVICE_MEMORY,
                     absl::StrCat("the device never has the memory for ", what,
                                  "; use a larger device or smaller arrays. ", sizes),
                     metadata);
  }
  return TryLater(absl::StatusCode::kResourceExhausted, v1::ERROR_REASON_DEVICE_MEMORY,
                  absl::StrCat("the device has no memory left for ", what,
                               "; delete arrays or use another device. ", sizes),
                  absl::Seconds(1), metadata);
}

}  // namespace stride::engine
