#include "server/worker/runtime/worker_main.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <optional>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/strip.h"
#include "absl/synchronization/mutex.h"
#include "server/wire/channel.h"
#include "server/worker/runtime/command_loop.h"
#include "server/worker/runtime/compile_loop.h"
#include "server/worker/runtime/fault_report.h"
#include "server/worker/runtime/process_setup.h"

namespace stride::worker {
namespace {

constexpr int kUsageError = 64;  // EX_USAGE of sysexits.h

int Usage(const char* program) {
  std::fprintf(stderr,
               "usage: %s --list | --serve --fd=N | --compile --fd=N\n"
               "       [--sandbox=off|try|require] [--memory=BYTES] [--processor-time=SECONDS]\n",
               program);
  return kUsageError;
}

struct Arguments {
  WorkerMode mode = WorkerMode::kList;
  int fd = -1;
  SandboxMode sandbox = SandboxMode::kOff;
  uint64_t memory_bytes = 0;  // limit of one compilation; 0: the kind's default
  absl::Duration processor_time = absl::Minutes(5);
};

bool TakeNumber(absl::string_view text, uint64_t least, uint64_t* number) {
  return absl::SimpleAtoi(text, number) && *number >= least;
}

bool TakeArgument(absl::string_view text, Arguments* arguments) {
  uint64_t number = 0;
  if (absl::ConsumePrefix(&text, "--fd=")) {
    arguments->fd = TakeNumber(text, 3, &number) && number < 1024 ? static_cast<int>(number) : -1;
    return fcntl(arguments->fd, F_SETFD, FD_CLOEXEC) == 0;
  }
  if (absl::ConsumePrefix(&text, "--memory=")) {
    return TakeNumber(text, 1, &arguments->memory_bytes);
  }
  if (absl::ConsumePrefix(&text, "--processor-time=")) {
    bool good = TakeNumber(text, 1, &number) && number < 86400;
    arguments->processor_time = absl::Seconds(good ? static_cast<int64_t>(number) : 0);
    return good;
  }
  arguments->sandbox = text == "--sandbox=require" ? SandboxMode::kRequire
                       : text == "--sandbox=try"   ? SandboxMode::kTry
                                                   : SandboxMode::kOff;
  return arguments->sandbox != SandboxMode::kOff || text == "--sandbox=off";
}

std::optional<Arguments> Parse(int argc, char** argv) {
  Arguments arguments;
  absl::string_view mode = argc > 1 ? argv[1] : "";
  if (mode == "--serve") {
    arguments.mode = WorkerMode::kServe;
  } else if (mode == "--compile") {
    arguments.mode = WorkerMode::kCompile;
  } else if (mode != "--list") {
    return std::nullopt;
  }
  for (int i = 2; i < argc; ++i) {
    if (!TakeArgument(argv[i], &arguments)) return std::nullopt;
  }
  bool has_socket = arguments.fd >= 0;
  if (has_socket != (arguments.mode != WorkerMode::kList)) return std::nullopt;
  return arguments;
}

int List(const DeviceKind& kind, const std::vector<wire::SandboxLayer>& sandbox) {
  wire::DeviceList list = kind.list();
  for (const wire::SandboxLayer& layer : sandbox) *list.add_sandbox() = layer;
  return list.SerializeToFileDescriptor(STDOUT_FILENO) ? 0 : 1;
}

int Serve(wire::Channel* channel, const DeviceKind& kind) {
  // See RaiseProcessLimits of the daemon: Debian's Abseil would check every lock.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  SetFaultSocket(channel->fd());
  CommandLoop loop(channel, kind.make_device());
  int code = loop.Run();
  // Skips the destructors of devices, drivers and libraries, since threads may still use them.
  std::fflush(nullptr);
  _exit(code);
}

int CompileUntilClosed(wire::Channel* channel, const DeviceKind& kind,
                       absl::Duration processor_time) {
  ExitWhenMemoryEnds();
  std::unique_ptr<CodeCompiler> compiler = kind.make_compiler();
  int code = RunCompileLoop(channel, compiler.get(), processor_time);
  std::fflush(nullptr);
  _exit(code);
}

}  // namespace

int WorkerMain(int argc, char** argv, const DeviceKind& kind) {
  std::optional<Arguments> arguments = Parse(argc, argv);
  if (!arguments.has_value()) return Usage(argv[0]);
  HardenProcess();
  SandboxNeeds needs = kind.needs ? kind.needs(arguments->mode) : SandboxNeeds();
  if (arguments->memory_bytes > 0) needs.memory_bytes = arguments->memory_bytes;
  auto sandbox = EnterSandbox(arguments->sandbox, needs);
  if (arguments->mode == WorkerMode::kList) return List(kind, sandbox);
  wire::Channel channel{UniqueFd(arguments->fd)};
  ExitWhenPeerGoes(arguments->fd);
  return arguments->mode == WorkerMode::kServe
             ? Serve(&channel, kind)
             : CompileUntilClosed(&channel, kind, arguments->processor_time);
}

}  // namespace stride::worker
