// stride-demo: runs the project's first workloads through the C++ client and checks them against
// plain C++. Usage: stride-demo [--address=ADDRESS] [--quick]. Exits with 0 when every check
// passes.
#include <malloc.h>

#include <algorithm>
#include <cstdio>
#include <string_view>

#include "client/examples/demo.h"

namespace stride::demo {
namespace {

int Main(const std::string& address, bool quick) {
  ConnectOptions options;
  options.address = address;
  // Long enough for any step here, so that a hang ends the demo.
  options.default_timeout = std::chrono::minutes(5);
  auto client = Client::Connect(options);
  if (!client) {
    std::fprintf(stderr, "stride-demo: %s\n", client.error().ToString().c_str());
    return 1;
  }
  auto devices = client->ListDevices();
  if (!devices) {
    std::fprintf(stderr, "stride-demo: %s\n", devices.error().ToString().c_str());
    return 1;
  }
  std::erase_if(*devices,
                [](const Device& device) { return device.state != Device::State::kServing; });
  if (devices->empty()) {
    std::fprintf(stderr, "stride-demo: no device of the daemon serves; run stride doctor\n");
    return 1;
  }
  if (std::none_of(devices->begin(), devices->end(),
                   [](const Device& device) { return device.kind == "cuda"; })) {
    std::printf("No GPU here: everything runs on the CPU device (%s).\n",
                devices->front().model.c_str());
  }
  std::printf("%-44s %-16s %8s %8s %8s %8s %8s  %s\n", "workload (times in ms)", "device", "upload",
              "queue", "compile", "run", "download", "check");
  Demo demo(*client, *devices, quick);
  RunCupy(demo);
  RunNumba(demo);
  RunMatmul(demo);
  RunJax(demo);
  RunJulia(demo);
  ShowMetrics(demo);
  std::printf("%s\n", demo.all_good() ? "Every check holds." : "Some checks FAILED.");
  return demo.all_good() ? 0 : 1;
}

}  // namespace
}  // namespace stride::demo

int main(int argc, char** argv) {
  // See client/cli/main.cc: keep large blocks in the process.
  mallopt(M_MMAP_THRESHOLD, 64 << 20);
  mallopt(M_TRIM_THRESHOLD, 256 << 20);
  std::string address;
  bool quick = false;
  constexpr std::string_view kAddress = "--address=";
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    if (argument.starts_with(kAddress)) {
      address = argument.substr(kAddress.size());
    } else if (argument == "--address" && i + 1 < argc) {
      address = argv[++i];
    } else if (argument == "--quick") {
      quick = true;
    } else {
      std::fprintf(stderr, "Usage: stride-demo [--address=ADDRESS] [--quick]\n");
      return 2;
    }
  }
  return stride::demo::Main(address, quick);
}
