#include <memory>

#include "server/worker/cuda/compile/cuda_compiler.h"
#include "server/worker/cuda/cuda_device.h"
#include "server/worker/cuda/device_list.h"
#include "server/worker/cuda/sandbox_needs.h"
#include "server/worker/runtime/worker_main.h"

int main(int argc, char** argv) {
  stride::worker::DeviceKind kind;
  kind.list = [] {
    stride::wire::DeviceList list = stride::cuda::ListDevices();
    // Also without a device, since code can be compiled without one.
    list.set_toolchain(stride::cuda::CudaCompiler::Toolchain());
    for (auto& device : *list.mutable_devices()) device.add_precompiled_targets(device.target());
    return list;
  };
  kind.make_device = [] { return std::make_unique<stride::cuda::CudaDevice>(); };
  kind.make_compiler = [] { return std::make_unique<stride::cuda::CudaCompiler>(); };
  kind.needs = stride::cuda::SandboxNeedsOf;
  return stride::worker::WorkerMain(argc, argv, kind);
}
