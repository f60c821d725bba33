#pragma once

#include "absl/status/status.h"
#include "server/engine/core/task.h"

namespace stride::engine {

// Adds the arguments of the task's kernel to its fault: dtype and shape of arrays, such as
// `float32[1000, 3], new int32[1], 7`, cut after some.
absl::Status WithArguments(const absl::Status& fault, const Task& task);

}  // namespace stride::engine
