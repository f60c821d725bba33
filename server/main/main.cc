// strided: the daemon.

#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "server/api/log.h"
#include "server/main/config.h"
#include "server/main/logging.h"
#include "server/main/notifier.h"
#include "server/main/process_limits.h"
#include "server/main/server.h"
#include "server/main/signals.h"
#include "server/main/supervise.h"

#ifndef STRIDE_VERSION
#define STRIDE_VERSION "0.1.0"
#endif

namespace stride {
namespace {

constexpr int kUsageExitCode = 2;

int Serve(const Config& config) {
  SetUpLogging(config);
  auto signals = Signals::Block();
  if (!signals.ok()) {
    api::LogError(signals.status().ToString());
    return 1;
  }
  size_t max_descriptors = RaiseProcessLimits();
  Notifier notifier = Notifier::FromEnvironment();
  auto server = Server::Start(config, max_descriptors);
  if (!server.ok()) {
    api::LogError(std::string(server.status().message()));
    return 1;
  }
  return Supervise(config, notifier, *signals, *std::move(server));
}

int Main(const std::vector<std::string>& arguments) {
  auto invocation = ParseCommandLine(arguments);
  if (!invocation.ok()) {
    std::fprintf(stderr, "strided: %s\n", std::string(invocation.status().message()).c_str());
    return kUsageExitCode;
  }
  switch (invocation->command) {
    case Command::kHelp:
      std::fputs(HelpText().c_str(), stdout);
      return 0;
    case Command::kVersion:
      std::puts("strided " STRIDE_VERSION);
      return 0;
    case Command::kServe:
      break;
  }
  return Serve(invocation->config);
}

}  // namespace
}  // namespace stride

int main(int argc, char** argv) { return stride::Main({argv + 1, argv + argc}); }
