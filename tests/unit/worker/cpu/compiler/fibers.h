// The reference: every thread of a block is a fiber that runs the kernel's plain per-thread form.
#pragma once

#include "server/worker/cpu/kernel/launch_limits.h"

namespace stride::cpu {

// `kernel.function` was compiled with ThreadForm::kPerThread. False when the threads wait for each
// other for ever.
bool RunWithFibers(const KernelEntry& kernel, const LaunchConfig& config, const void* parameters);

}  // namespace stride::cpu
