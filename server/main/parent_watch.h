#pragma once

#include "absl/status/statusor.h"
#include "server/base/unique_fd.h"

namespace stride {

// A descriptor that becomes readable when the process ends. NOT_FOUND when it has ended already.
absl::StatusOr<UniqueFd> WatchProcess(int pid);

}  // namespace stride
