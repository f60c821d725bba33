#include "server/transfer/bulk_gate.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "server/base/error.h"

namespace stride::transfer {
namespace {

// About the time that a 1 GiB stream takes to leave.
constexpr absl::Duration kRetryDelay = absl::Milliseconds(500);

}  // namespace

absl::StatusOr<std::shared_ptr<const void>> BulkGate::Enter() {
  if (num_streams_.fetch_add(1) >= max_streams_) {
    num_streams_.fetch_sub(1);
    stats_.refused.fetch_add(1, std::memory_order_relaxed);
    return TryLater(
        absl::StatusCode::kResourceExhausted, v1::ERROR_REASON_QUOTA,
        absl::StrCat("too many uploads and downloads at once; the limit is ", max_streams_),
        kRetryDelay, {{"limit", std::to_string(max_streams_)}});
  }
  stats_.admitted.fetch_add(1, std::memory_order_relaxed);
  return std::shared_ptr<const void>(&stats_, [this](const void*) { num_streams_.fetch_sub(1); });
}

}  // namespace stride::transfer
