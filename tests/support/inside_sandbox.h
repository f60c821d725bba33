#pragma once

#include <functional>
#include <string>

#include "server/worker/runtime/sandbox.h"

namespace stride::worker {

// Runs `test` in a separate process, inside a worker's sandbox; the calling process must have one
// thread. Returns the result of `test`, preceded by the missing layers and followed by an abnormal
// exit of the process: empty if all is well.
std::string InsideSandbox(const SandboxNeeds& needs, const std::function<std::string()>& test);

}  // namespace stride::worker
