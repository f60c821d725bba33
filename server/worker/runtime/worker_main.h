#pragma once

#include <functional>
#include <memory>

#include "server/wire/worker.pb.h"
#include "server/worker/runtime/code_compiler.h"
#include "server/worker/runtime/device.h"
#include "server/worker/runtime/sandbox.h"

namespace stride::worker {

enum class WorkerMode { kList, kServe, kCompile };

// What a device kind brings; everything else of a worker executable is shared.
struct DeviceKind {
  std::function<wire::DeviceList()> list;
  std::function<std::unique_ptr<Device>()> make_device;
  std::function<std::unique_ptr<CodeCompiler>()> make_compiler;
  // Called before the sandbox is entered, and so before anything of the daemon's is read.
  std::function<SandboxNeeds(WorkerMode)> needs;
};

// The whole main of a worker executable: parses the command line that worker.proto tells of and
// enters the sandbox before all else. Returns the exit code.
int WorkerMain(int argc, char** argv, const DeviceKind& kind);

}  // namespace stride::worker
