#include "server/worker/runtime/worker_main.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string_view>

#include "server/wire/channel.h"
#include "server/worker/runtime/command_loop.h"
#include "server/worker/runtime/compile_loop.h"
#include "server/worker/runtime/fault_report.h"
#include "server/worker/runtime/process_setup.h"

namespace stride::worker {
namespace {

constexpr int kUsageError = 64;  // EX_USAGE of sysexits.h

int Usage(const char* program) {
  std::fprintf(stderr, "usage: %s --list | --serve --fd=N | --compile --fd=N\n", program);
  return kUsageError;
}

std::optional<int> ParseFd(std::string_view argument) {
  constexpr std::string_view kPrefix = "--fd=";
  if (argument.substr(0, kPrefix.size()) != kPrefix) return std::nullopt;
  char* end = nullptr;
  long fd = std::strtol(argument.data() + kPrefix.size(), &end, 10);
  if (*end != 0 || fd < 3 || fcntl(static_cast<int>(fd), F_SETFD, FD_CLOEXEC) != 0) {
    return std::nullopt;
  }
  return static_cast<int>(fd);
}

int List(const DeviceKind& kind) {
  return kind.list().SerializeToFileDescriptor(STDOUT_FILENO) ? 0 : 1;
}

int Serve(wire::Channel* channel, const DeviceKind& kind) {
  SetFaultSocket(channel->fd());
  CommandLoop loop(channel, kind.make_device());
  int code = loop.Run();
  // No destructor of a device, a driver or a library runs: threads may still be in them.
  std::fflush(nullptr);
  _exit(code);
}

int CompileUntilClosed(wire::Channel* channel, const DeviceKind& kind) {
  SetCompilerLimits();
  std::unique_ptr<CodeCompiler> compiler = kind.make_compiler();
  int code = RunCompileLoop(channel, compiler.get());
  std::fflush(nullptr);
  _exit(code);
}

}  // namespace

int WorkerMain(int argc, char** argv, const DeviceKind& kind) {
  std::string_view mode = argc > 1 ? argv[1] : "";
  if (mode == "--list" && argc == 2) return List(kind);
  if ((mode != "--serve" && mode != "--compile") || argc != 3) return Usage(argv[0]);
  std::optional<int> fd = ParseFd(argv[2]);
  if (!fd.has_value()) return Usage(argv[0]);
  HardenProcess();
  wire::Channel channel{UniqueFd(*fd)};
  ExitWhenPeerGoes(*fd);
  return mode == "--serve" ? Serve(&channel, kind) : CompileUntilClosed(&channel, kind);
}

}  // namespace stride::worker
