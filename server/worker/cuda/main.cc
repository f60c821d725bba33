#include <cstdlib>
#include <memory>
#include <string>

#include "server/worker/cuda/compile/cuda_compiler.h"
#include "server/worker/cuda/cuda_device.h"
#include "server/worker/cuda/device_list.h"
#include "server/worker/cuda/sandbox_paths.h"
#include "server/worker/runtime/worker_main.h"

// Of compiled code, a memory file.
constexpr uint64_t kMaxObjectBytes = 1 << 30;

namespace {

// The driver opens its devices when a context is made; it does so in the sandbox, so that what it
// needs is known and the driver's own code, too, runs confined from its first instruction. What
// others may have put into its compile cache is not taken, and nothing is put there:
// CUDA_CACHE_DISABLE.
stride::worker::SandboxNeeds Needs(stride::worker::WorkerMode mode) {
  using stride::worker::WorkerMode;
  setenv("CUDA_CACHE_DISABLE", "1", 1);
  stride::worker::SandboxNeeds needs;
  auto& read_only = needs.paths.read_only;
  read_only = stride::worker::LibraryFolders();
  for (const std::string& folder : stride::cuda::ToolkitRoots()) read_only.push_back(folder);
  needs.paths.read_write = {"/dev/null", "/dev/zero"};
  if (mode == WorkerMode::kCompile) {
    // Hostile source may name any file that is readable here: of /proc, one.
    for (const char* path : {"/proc/self/maps", "/proc/cpuinfo", "/proc/meminfo", "/dev/urandom",
                             "/sys/devices/system/cpu"}) {
      read_only.push_back(path);
    }
    needs.syscalls = stride::worker::SyscallSet::kFiles;
    needs.file_bytes = kMaxObjectBytes;
    return needs;
  }
  // Of a foreign process the kernel shows no memory, environment or descriptor (Landlock, user
  // namespace); PCI topology is in /sys.
  for (const char* path : {"/proc", "/sys", "/dev/urandom", "/etc/nvidia", "/usr/share/nvidia"}) {
    read_only.push_back(path);
  }
  for (const std::string& folder : stride::cuda::DriverFolders()) read_only.push_back(folder);
  // cuInit names its threads there, and gives up when it may not (seen on driver 580).
  needs.paths.read_write.push_back("/proc/self/task");
  needs.num_descriptors = 1024;  // each GPU, context and imported arena takes some
  for (const std::string& device : stride::cuda::DeviceFiles()) {
    needs.paths.read_write.push_back(device);
  }
  return needs;
}

}  // namespace

int main(int argc, char** argv) {
  stride::worker::DeviceKind kind;
  kind.list = [] {
    stride::wire::DeviceList list = stride::cuda::ListDevices();
    // Also where there is no device: code can be compiled without one.
    list.set_toolchain(stride::cuda::CudaCompiler::Toolchain());
    for (auto& device : *list.mutable_devices()) device.add_precompiled_targets(device.target());
    return list;
  };
  kind.make_device = [] { return std::make_unique<stride::cuda::CudaDevice>(); };
  kind.make_compiler = [] { return std::make_unique<stride::cuda::CudaCompiler>(); };
  kind.needs = Needs;
  return stride::worker::WorkerMain(argc, argv, kind);
}
