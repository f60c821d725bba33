#pragma once

#include <cstdint>

namespace stride {

// Processors and memory available to this process: a container, a control group or an affinity mask
// may grant less than the machine has.
int AvailableThreads();
int64_t AvailableMemoryBytes();

// Most processes and threads that this process's user and cgroup may have; 0: no known limit.
int64_t MostProcesses();

}  // namespace stride
