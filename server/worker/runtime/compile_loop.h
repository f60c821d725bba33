#pragma once

#include "absl/time/time.h"
#include "server/wire/channel.h"
#include "server/worker/runtime/code_compiler.h"

namespace stride::worker {

// The compiling side of a worker: answers each CompileRequest, one after another, until the socket
// closes. Returns the process's exit code. SIGXCPU ends the process in a request that takes more
// than `processor_time`.
int RunCompileLoop(wire::Channel* channel, CodeCompiler* compiler, absl::Duration processor_time);

}  // namespace stride::worker
