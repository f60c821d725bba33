#pragma once

#include "absl/status/status.h"
#include "server/scheduler/task.h"

namespace stride::scheduler {

// The fault of a task, with what its kernel was given: of arrays their dtype and shape, such as
// `float32[1000, 3], new int32[1], 7`, cut after some.
absl::Status WithArguments(const absl::Status& fault, const Task& task);

}  // namespace stride::scheduler
