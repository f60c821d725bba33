#pragma once

#include <string>

#include "server/scheduler/task.h"

namespace stride::scheduler {

// A kernel's arguments for its error, such as `float32[1000, 3], new int32[1], 7`; of arrays their
// dtype and shape, cut after some. Empty for a task that launches no client's kernel.
std::string ArgumentText(const Task& task);

}  // namespace stride::scheduler
