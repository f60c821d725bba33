#pragma once

#include <cstdint>

namespace stride {

// File descriptors that this process has open. Microseconds where the kernel counts them (Linux
// 6.2), else one directory entry after another.
int64_t OpenDescriptors();

}  // namespace stride
