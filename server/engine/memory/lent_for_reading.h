#pragma once

#include "absl/status/status.h"
#include "server/base/error.h"

namespace stride::engine {

// The error for work that would write, or move, an array while a client has its memory mapped
// (exports.h).
inline absl::Status LentForReading() {
  return MakeError(absl::StatusCode::kFailedPrecondition, v1::ERROR_REASON_WRONG_STATE,
                   "the array cannot be written while a client has its memory mapped: close the "
                   "mapping first, or write to a copy");
}

}  // namespace stride::engine
