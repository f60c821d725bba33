#pragma once

#include <cstdint>

namespace stride {

// What this process may use of the machine: less than the machine has where a container, a control
// group or an affinity mask says so.
int AvailableThreads();
int64_t AvailableMemoryBytes();

// Processes and threads that this process's user and cgroup may have; 0: no bound is known.
int64_t MostProcesses();

}  // namespace stride
