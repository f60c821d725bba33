#pragma once

#include <cstdint>

namespace stride {

// What this process may use of the machine: less than the machine has where a container, a control
// group or an affinity mask says so.
int AvailableThreads();
int64_t AvailableMemoryBytes();

}  // namespace stride
