#include "server/worker/cuda/sandbox_needs.h"

#include <cstdint>
#include <cstdlib>
#include <string>

#include "server/worker/cuda/print_capture.h"
#include "server/worker/cuda/sandbox_paths.h"

namespace stride::cuda {
namespace {

// The largest memory file of compiled code.
constexpr uint64_t kMaxObjectBytes = 1 << 30;

}  // namespace

worker::SandboxNeeds SandboxNeedsOf(worker::WorkerMode mode) {
  setenv("CUDA_CACHE_DISABLE", "1", 1);
  worker::SandboxNeeds needs;
  auto& read_only = needs.paths.read_only;
  read_only = worker::LibraryFolders();
  for (const std::string& folder : ToolkitRoots()) read_only.push_back(folder);
  needs.paths.read_write = {"/dev/null", "/dev/zero"};
  if (mode == worker::WorkerMode::kCompile) {
    // Hostile source may name any readable file, so a compiler gets only these few of /proc and
    // /sys.
    for (const char* path : {"/proc/self/maps", "/proc/cpuinfo", "/proc/meminfo", "/dev/urandom",
                             "/sys/devices/system/cpu"}) {
      read_only.push_back(path);
    }
    needs.syscalls = worker::SyscallSet::kFiles;
    needs.file_bytes = kMaxObjectBytes;
    return needs;
  }
  // The kernel shows no memory, environment or descriptors of other processes (Landlock, user
  // namespace); PCI topology is in /sys.
  for (const char* path : {"/proc", "/sys", "/dev/urandom", "/etc/nvidia", "/usr/share/nvidia"}) {
    read_only.push_back(path);
  }
  for (const std::string& folder : DriverFolders()) read_only.push_back(folder);
  // cuInit names its threads there, and fails without that permission (seen on driver 580).
  needs.paths.read_write.push_back("/proc/self/task");
  needs.num_descriptors = 1024;  // each GPU, context and imported arena uses some
  needs.file_bytes = PrintCapture::kFileBytes;
  for (const std::string& device : DeviceFiles()) needs.paths.read_write.push_back(device);
  return needs;
}

}  // namespace stride::cuda
