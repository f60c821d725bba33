#include "server/base/system_error.h"

#include <cerrno>
#include <string>

#include "absl/strings/str_cat.h"
#include "server/base/error.h"

namespace stride {
namespace {

constexpr absl::Duration kRetryDelay = absl::Seconds(1);

// The resource that is exhausted; empty: the error is not a shortage.
std::string_view LackingAfter(int error) {
  switch (error) {
    case EMFILE:
    case ENFILE:
      return "file descriptors";
    case EAGAIN:  // from fork and clone: RLIMIT_NPROC, pids.max, threads-max
    case EUSERS:
      return "processes or threads";
    case ENOMEM:
    case ENOBUFS:
    case ENOSPC:  // from writes to a memory file
    case EDQUOT:
      return "memory";
    default:
      return {};
  }
}

}  // namespace

absl::Status SystemError(int error, std::string_view doing) {
  const std::string_view lacking = LackingAfter(error);
  const std::string what(doing);
  if (lacking.empty()) return absl::ErrnoToStatus(error, what);
  return TryLater(absl::StatusCode::kResourceExhausted, v1::ERROR_REASON_QUEUE_FULL,
                  absl::StrCat("the service's machine has no more ", std::string(lacking),
                               " for this (", what, "); try again"),
                  kRetryDelay, {{"resource", std::string(lacking)}});
}

absl::Status ThreadError(int error) { return SystemError(error, "starting a thread"); }

}  // namespace stride
