#pragma once

#include "server/wire/channel.h"
#include "server/worker/runtime/code_compiler.h"

namespace stride::worker {

// The compiling side of a worker: answers each CompileRequest, one after another, until the socket
// closes. Returns the process's exit code.
int RunCompileLoop(wire::Channel* channel, CodeCompiler* compiler);

}  // namespace stride::worker
