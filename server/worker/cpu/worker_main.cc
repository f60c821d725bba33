// stride-worker-cpu. The modes that need Clang, --list and --compile, are in the executable
// stride-compiler-cpu of the same folder, so that a worker does not load 200 MB of compiler.
// Measured on two busy cores (run without arguments, best of three): this executable loads and
// exits in under 10 ms, the compiler in 20 ms; from spawn to Started a worker takes 6 ms
// (bench/micro/worker_bench).
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstdio>
#include <cstring>
#include <string>

#include "server/worker/cpu/device.h"
#include "server/worker/cpu/lower/blas.h"
#include "server/worker/cpu/machine.h"
#include "server/worker/runtime/worker_main.h"

namespace {

constexpr uint64_t kLeastMemoryBytes = uint64_t{4} << 30;

std::string SiblingPath() {
  char path[PATH_MAX] = {};
  if (readlink("/proc/self/exe", path, sizeof(path) - 1) < 0) return {};
  std::string folder = path;
  return folder.substr(0, folder.rfind('/') + 1) + "stride-compiler-cpu";
}

// Serving opens no file once the device has started (see CpuDevice::Start); until then it reads the
// number of available cores. Half of the machine's memory is for launches' needs other than arrays,
// which do not count; kernels' allocations beyond it fail.
stride::worker::SandboxNeeds Needs() {
  stride::worker::SandboxNeeds needs;
  needs.syscalls = stride::worker::SyscallSet::kFiles;
  needs.paths.read_only = {"/proc/self", "/sys/fs/cgroup", "/sys/devices/system/cpu"};
  needs.memory_bytes =
      std::max(kLeastMemoryBytes, static_cast<uint64_t>(stride::cpu::AvailableMemoryBytes()) / 2);
  return needs;
}

int BecomeCompiler(char** argv) {
  std::string path = SiblingPath();
  execv(path.c_str(), argv);
  std::perror(
      "stride-worker-cpu: stride-compiler-cpu, which must be in the same folder, does not start");
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1 && (std::strcmp(argv[1], "--list") == 0 || std::strcmp(argv[1], "--compile") == 0)) {
    return BecomeCompiler(argv);
  }
  stride::cpu::ChooseBlasCore(argv);
  return stride::worker::WorkerMain(
      argc, argv,
      {.list = nullptr,
       .make_device = [] { return std::make_unique<stride::cpu::CpuDevice>(); },
       .make_compiler = nullptr,
       .needs = [](stride::worker::WorkerMode) { return Needs(); }});
}
