// Runs a compiled kernel over a grid.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "cpucuda/runtime/launch_limits.h"
#include "cpucuda/runtime/thread_pool.h"
#include "server/base/printed_text.h"

namespace stride::cpucuda {

// Blocks until every block has run. `packed_parameters` is laid out by KernelParameter::offset and
// is not kept. Errors: as CheckLaunch; ABORTED with the cause when a kernel's assert or __trap()
// ended the launch (blocks that had not started do not run; arrays keep what was written);
// CANCELLED when `cancel` became true, which is polled between blocks. `cancel` and `printed` may
// be null. Appends to `printed` in the order in which the blocks ran, up to kMaxPrintedBytes. A
// memory fault is a signal, which the caller handles (see fault.h).
absl::Status Launch(ThreadPool& pool, const KernelEntry& kernel, const LaunchConfig& config,
                    const void* packed_parameters, const std::atomic<bool>* cancel,
                    PrintedText* printed = nullptr);

}  // namespace stride::cpucuda
