// stride-compiler-cpu: stride-worker-cpu's --list and --compile modes (see worker_main.cc).
#include <cstdio>
#include <cstring>

#include "server/worker/cpu/code_compiler.h"
#include "server/worker/cpu/device_list.h"
#include "server/worker/runtime/worker_main.h"

int main(int argc, char** argv) {
  if (argc > 1 && std::strcmp(argv[1], "--serve") == 0) {
    std::fprintf(stderr, "stride-compiler-cpu serves no device; stride-worker-cpu does\n");
    return 64;
  }
  return stride::worker::WorkerMain(
      argc, argv, {.list = stride::cpu::ListDevices, .make_device = nullptr, .make_compiler = [] {
                     return std::make_unique<stride::cpu::CpuCompiler>();
                   }});
}
