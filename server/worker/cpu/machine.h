#pragma once

#include <string>

#include "server/base/machine_limits.h"

namespace stride::cpu {

using stride::AvailableMemoryBytes;
using stride::AvailableThreads;
// As the processor calls itself; "CPU" where it does not.
std::string ProcessorModel();

}  // namespace stride::cpu
