#pragma once

#include <functional>
#include <string>

#include "server/worker/runtime/sandbox.h"

namespace stride::worker {

// Runs `test` in a process of its own, inside a worker's sandbox; the calling process must have one
// thread. Returns what `test` returns, after the layers that are missing and before how the process
// ended, if not by itself: empty when all is well.
std::string InsideSandbox(const SandboxNeeds& needs, const std::function<std::string()>& test);

}  // namespace stride::worker
