#pragma once

#include <functional>
#include <memory>

#include "server/wire/worker.pb.h"
#include "server/worker/runtime/code_compiler.h"
#include "server/worker/runtime/device.h"

namespace stride::worker {

// What a device kind brings; everything else of a worker executable is shared.
struct DeviceKind {
  std::function<wire::DeviceList()> list;
  std::function<std::unique_ptr<Device>()> make_device;
  std::function<std::unique_ptr<CodeCompiler>()> make_compiler;
};

// The whole main of a worker executable: parses --list, --serve --fd=N, --compile --fd=N. Returns
// the exit code.
int WorkerMain(int argc, char** argv, const DeviceKind& kind);

}  // namespace stride::worker
