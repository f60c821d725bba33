// strided: the daemon.

#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/api/log.h"
#include "server/base/crash_point.h"
#include "server/base/passed_fds.h"
#include "server/fd_store/fd_store.h"
#include "server/fd_store/supervised_fd_store.h"
#include "server/fd_store/supervisor.h"
#include "server/fd_store/systemd_fd_store.h"
#include "server/main/command_line.h"
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

// `FdStore` null: use systemd's FdStore, if there is one.
int Serve(const Config& config, std::unique_ptr<fd_store::FdStore> fd_store,
          std::vector<NamedFd> passed) {
  auto signals = Signals::Block();
  if (!signals.ok()) {
    api::LogError(signals.status().ToString());
    return 1;
  }
  size_t max_descriptors = RaiseProcessLimits();
  if (fd_store == nullptr) fd_store = fd_store::MakeSystemdFdStore(&passed);
  if (fd_store == nullptr) fd_store = fd_store::MakeNullFdStore();
  Notifier notifier = Notifier::FromEnvironment();
  auto server = Server::Start(config, max_descriptors, fd_store.get(), std::move(passed));
  if (!server.ok()) {
    api::LogError(std::string(server.status().message()));
    return 1;
  }
  return Supervise(config, notifier, *signals, fd_store.get(), *std::move(server));
}

// This process only holds descriptors; the daemon is its child.
int ServeUnderSupervisor(const Config& config, std::vector<NamedFd> passed) {
  fd_store::SupervisorOptions options;
  options.log = [](const std::string& text) { api::LogWarning(text); };
  options.patience =
      config.hang_timeout > absl::ZeroDuration() ? config.hang_timeout : absl::InfiniteDuration();
  options.daemon = [&, patience = options.patience](UniqueFd socket) {
    return Serve(config, fd_store::MakeSupervisedFdStore(std::move(socket), patience), {});
  };
  for (NamedFd& entry : passed) {
    entry.name = absl::StrCat(fd_store::kPassedPrefix, options.passed.size());
    options.passed.push_back(std::move(entry));
  }
  return fd_store::RunSupervisor(std::move(options));
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
  SetUpLogging(invocation->config);
  std::vector<NamedFd> passed = TakePassedFds();
  if (invocation->config.supervise)
    return ServeUnderSupervisor(invocation->config, std::move(passed));
  ArmCrashPointsFromEnvironment();
  return Serve(invocation->config, nullptr, std::move(passed));
}

}  // namespace
}  // namespace stride

int main(int argc, char** argv) { return stride::Main({argv + 1, argv + argc}); }
