#pragma once

#include "absl/status/status.h"
#include "server/wire/worker.pb.h"
#include "stride/v1/error.pb.h"

namespace stride::wire {

// Longest text of a status between processes, in bytes; longer ones are cut in the middle.
inline constexpr size_t kMaxStatusText = 32 << 10;

// Converts a status for the wire. Text that is not UTF-8 (a kernel may have any name) is converted
// to UTF-8, which the parser requires.
Status FromStatus(const absl::Status& status);

// The reason that clients see for a worker's code: FAILED_PRECONDITION is KERNEL_FAULT,
// RESOURCE_EXHAUSTED DEVICE_MEMORY, UNIMPLEMENTED NOT_IMPLEMENTED, INVALID_ARGUMENT INVALID_FIELD,
// any other code INTERNAL.
v1::ErrorReason ReasonFor(absl::StatusCode code);

// Converts a worker's report to a client error with ReasonFor's reason, or with LINEAR_ALGEBRA
// where the worker reports it for OUT_OF_RANGE. An invalid code counts as INTERNAL.
absl::Status ToStatus(const Status& status);

}  // namespace stride::wire
