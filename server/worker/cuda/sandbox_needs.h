#pragma once

#include "server/worker/runtime/sandbox.h"
#include "server/worker/runtime/worker_main.h"

namespace stride::cuda {

// Paths, system calls and limits of a CUDA worker in one of its modes. The driver opens its devices
// when a context is made, inside the sandbox, so that the driver's code runs confined from its
// first instruction. Switches the driver's compile cache off by an environment variable: no other
// process's entries are read, and none is written. Call once, before any thread starts.
worker::SandboxNeeds SandboxNeedsOf(worker::WorkerMode mode);

}  // namespace stride::cuda
