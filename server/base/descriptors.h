#pragma once

#include <cstdint>

namespace stride {

// Number of open file descriptors of this process. Takes microseconds where the kernel counts them
// (Linux 6.2), else reads the directory of descriptors.
int64_t OpenDescriptors();

}  // namespace stride
