#pragma once

#include "absl/status/status.h"
#include "server/wire/worker.pb.h"
#include "stride/v1/error.pb.h"

namespace stride::wire {

// Longest text that a status carries between processes, in bytes; longer ones lose their middle.
inline constexpr size_t kMaxStatusText = 32 << 10;

// What a worker reports. Text that is not UTF-8 (a kernel's name may be anything) is made so: the
// parser refuses other.
Status FromStatus(const absl::Status& status);

// The reason that clients see for a worker's code: FAILED_PRECONDITION is KERNEL_FAULT,
// RESOURCE_EXHAUSTED DEVICE_MEMORY, UNIMPLEMENTED NOT_IMPLEMENTED, INVALID_ARGUMENT INVALID_FIELD,
// any other code INTERNAL.
v1::ErrorReason ReasonFor(absl::StatusCode code);

// What the daemon makes of a worker's report, with that reason, or with LINEAR_ALGEBRA where the
// worker says so of an OUT_OF_RANGE. A code that is none counts as INTERNAL.
absl::Status ToStatus(const Status& status);

}  // namespace stride::wire
