#include "server/worker/cpu/device_list.h"

#include "server/worker/cpu/code_compiler.h"
#include "server/worker/cpu/machine.h"

namespace stride::cpu {
namespace {

// One thread's copy rate and a common memory rate; used only for a scheduler's first estimates.
constexpr double kMemoryBytesPerSecond = 20e9;
constexpr double kTransferBytesPerSecond = 8e9;

}  // namespace

wire::DeviceList ListDevices() {
  wire::DeviceList list;
  auto target = NativeTarget();
  if (!target.ok()) {
    list.set_reason(std::string(target.status().message()));
    return list;
  }
  wire::DeviceDescription* device = list.add_devices();
  device->set_id("cpu:0");
  device->set_kind("cpu");
  device->set_model(ProcessorModel());
  device->set_target(*target);
  device->set_memory_bytes(AvailableMemoryBytes());
  device->set_num_compute_units(AvailableThreads());
  device->set_host_memory(true);
  device->set_arena_granularity_bytes(4096);
  device->set_memory_bytes_per_second(kMemoryBytesPerSecond);
  device->set_transfer_bytes_per_second(kTransferBytesPerSecond);
  list.set_toolchain(ToolchainName());
  for (const std::string& portable : PortableTargets()) device->add_precompiled_targets(portable);
  return list;
}

}  // namespace stride::cpu
