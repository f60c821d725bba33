#include <memory>
#include <string>

#include "server/worker/cuda/compile/cuda_compiler.h"
#include "server/worker/cuda/cuda_device.h"
#include "server/worker/cuda/device_list.h"
#include "server/worker/runtime/worker_main.h"

int main(int argc, char** argv) {
  stride::worker::DeviceKind kind;
  kind.list = [] {
    stride::wire::DeviceList list = stride::cuda::ListDevices();
    const std::string toolchain =
        list.devices_size() > 0 ? stride::cuda::CudaCompiler::Toolchain() : "";
    for (auto& device : *list.mutable_devices()) device.set_toolchain(toolchain);
    return list;
  };
  kind.make_device = [] { return std::make_unique<stride::cuda::CudaDevice>(); };
  kind.make_compiler = [] { return std::make_unique<stride::cuda::CudaCompiler>(); };
  return stride::worker::WorkerMain(argc, argv, kind);
}
