#pragma once

#include "server/worker/runtime/sandbox.h"
#include "server/worker/runtime/worker_main.h"

namespace stride::cuda {

// Paths, system calls and limits of a CUDA worker in one of its modes. The driver opens its devices
// when a context is created, inside the sandbox, so that its code is confined from the first
// instruction. Disables the driver's compile cache by an environment variable: other processes'
// entries are not read, and none is written. Call once, before any thread starts.
worker::SandboxNeeds SandboxNeedsOf(worker::WorkerMode mode);

}  // namespace stride::cuda
