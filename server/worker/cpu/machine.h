#pragma once

#include <cstdint>
#include <string>

namespace stride::cpu {

// What this process may use of the machine: less than the machine has where a container or an
// affinity mask says so.
int AvailableThreads();
int64_t AvailableMemoryBytes();
// As the processor calls itself; "CPU" where it does not.
std::string ProcessorModel();

}  // namespace stride::cpu
