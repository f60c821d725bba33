#pragma once

#include <functional>
#include <memory>

#include "server/wire/worker.pb.h"
#include "server/worker/runtime/code_compiler.h"
#include "server/worker/runtime/device.h"
#include "server/worker/runtime/sandbox.h"

namespace stride::worker {

enum class WorkerMode { kList, kServe, kCompile };

// The part of a worker executable that depends on the device kind.
struct DeviceKind {
  std::function<wire::DeviceList()> list;
  std::function<std::unique_ptr<Device>()> make_device;
  std::function<std::unique_ptr<CodeCompiler>()> make_compiler;
  // Called before the sandbox is entered, and so before any input from the daemon is read.
  std::function<SandboxNeeds(WorkerMode)> needs;
};

// The main function of a worker executable: parses the command line documented in worker.proto and
// enters the sandbox before anything else. Returns the exit code.
int WorkerMain(int argc, char** argv, const DeviceKind& kind);

}  // namespace stride::worker
