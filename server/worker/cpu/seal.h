#pragma once

#include "absl/status/status.h"

namespace stride::cpu {

// From now on no thread of this process can open a file, start a program, create a socket or reach
// another process: kernels are native code and may issue any system call. In a kernel's thread a
// forbidden call is a fault of the kernel, reported with the call's name; in a library's thread it
// fails. Modules still load, from descriptors.
absl::Status Seal();

}  // namespace stride::cpu
