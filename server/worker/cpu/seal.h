#pragma once

#include "absl/status/status.h"

namespace stride::cpu {

// From now on no thread of this process opens a file, starts a program, makes a socket, or reaches
// another process: kernels are native code and may issue any system call. One that is not allowed
// is a fault of the kernel, told with its name, when a kernel's thread makes it; a library of ours
// is refused. Modules still load, from descriptors.
absl::Status Seal();

}  // namespace stride::cpu
