// stride-compiler-cpu: stride-worker-cpu's --list and --compile modes (see worker_main.cc).
#include <cstdio>
#include <cstring>

#include "server/worker/cpu/code_compiler.h"
#include "server/worker/cpu/device_list.h"
#include "server/worker/runtime/worker_main.h"

// Limit of the object and of the linker's input, both memory files.
constexpr uint64_t kMaxObjectBytes = 1 << 30;

namespace {

using stride::worker::SandboxNeeds;
using stride::worker::SyscallSet;
using stride::worker::WorkerMode;

SandboxNeeds Needs(WorkerMode mode) {
  SandboxNeeds needs;
  if (mode == WorkerMode::kList) {  // reads properties of the machine; runs no client's code
    needs.syscalls = SyscallSet::kFiles;
    needs.paths.read_only = {"/proc", "/sys"};
  } else {  // Clang's headers are part of this executable, and its files are in memory
    needs.syscalls = SyscallSet::kCompiler;
    needs.file_bytes = kMaxObjectBytes;
  }
  return needs;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1 && std::strcmp(argv[1], "--serve") == 0) {
    std::fprintf(stderr, "stride-compiler-cpu serves no device; stride-worker-cpu does\n");
    return 64;
  }
  return stride::worker::WorkerMain(
      argc, argv,
      {.list = stride::cpu::ListDevices,
       .make_device = nullptr,
       .make_compiler = [] { return std::make_unique<stride::cpu::CpuCompiler>(); },
       .needs = Needs});
}
