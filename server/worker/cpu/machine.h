#pragma once

#include <string>

#include "server/base/machine_limits.h"

namespace stride::cpu {

using stride::AvailableMemoryBytes;
using stride::AvailableThreads;
// The processor's model name; "CPU" if unknown.
std::string ProcessorModel();

}  // namespace stride::cpu
