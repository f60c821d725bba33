#pragma once

#include "absl/status/status.h"
#include "stride/v1/operation.pb.h"

namespace stride::api {

// Refuses lists that no operation needs so long, before anything of the operation is looked at: the
// engine plans under its lock, and a message of 4 MiB holds a million entries. SIZE_LIMIT with the
// field's path within the operation.
absl::Status CheckCounts(const v1::Operation& operation);

}  // namespace stride::api
