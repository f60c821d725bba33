// stride: the command line of Stride.
#include <malloc.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <thread>

#include "absl/synchronization/mutex.h"
#include "client/cli/command.h"
#include "client/cli/json.h"
#include "client/cli/suggest.h"

namespace stride::cli {
namespace {

constexpr int kInterrupted = 130;
std::atomic<bool> interrupted = false;

// The first Ctrl-C cancels calls, so that the daemon drops their work and a private daemon stops in
// order; the second one exits. A thread receives the signals, since a signal handler may not call
// Cancel.
void WatchSignals(const Cancellation& cancellation) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGINT);
  sigaddset(&set, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  std::thread([set, cancellation] {
    int signal = 0;
    sigwait(&set, &signal);
    interrupted = true;
    // Cancel on another thread: it may block, and the second signal must still be received.
    std::thread([cancellation] { cancellation.Cancel(); }).detach();
    sigwait(&set, &signal);
    _exit(kInterrupted);
  }).detach();
}

int Report(const Error& error, bool json) {
  if (interrupted) {
    std::fflush(stdout);
    std::fputs("stride: interrupted\n", stderr);
    return kInterrupted;
  }
  if (json) {
    std::vector<Json> fields;
    for (const auto& violation : error.violations) {
      fields.push_back(Json::Object({{"field", Json::String(violation.field)},
                                     {"description", Json::String(violation.description)}}));
    }
    std::vector<std::pair<std::string, Json>> metadata;
    for (const auto& [key, value] : error.metadata) metadata.emplace_back(key, Json::String(value));
    const Json object = Json::Object({{"code", Json::String(Name(error.code))},
                                      {"reason", Json::String(error.reason)},
                                      {"message", Json::String(error.message)},
                                      {"fields", Json::Array(fields)},
                                      {"metadata", Json::Object(metadata)}});
    std::printf("%s\n", Json::Object({{"error", object}}).text().c_str());
  }
  std::fflush(stdout);
  std::fprintf(stderr, "stride: %s\n", error.ToString().c_str());
  return static_cast<int>(error.code);
}

const Command* Find(const std::string& name) {
  for (const Command* command : AllCommands()) {
    if (command->name == name) return command;
  }
  return nullptr;
}

Error UnknownCommand(const std::string& name) {
  std::vector<std::string> names;
  for (const Command* command : AllCommands()) names.push_back(command->name);
  const std::string near = Suggest(name, names);
  return {.code = Code::kInvalidArgument,
          .message = "No command '" + name + "'. " +
                     (near.empty() ? "See stride --help" : "Did you mean stride " + near + "?")};
}

int RunCommand(const Command& command, std::span<const std::string> arguments) {
  std::vector<OptionSpec> options = command.options;
  options.insert(options.end(), CommonOptions().begin(), CommonOptions().end());
  auto line = CommandLine::Parse(arguments, options);
  if (!line) return Report(UsageError(command, line.error().message), false);
  if (line->Has("help")) {
    std::fputs(CommandHelp(command).c_str(), stdout);
    return 0;
  }
  const Cancellation cancellation;
  WatchSignals(cancellation);
  const bool json = line->Has("json");
  Result<void> result = [&] {
    Context context(std::move(*line), cancellation);
    if (auto checked = context.CheckCommonOptions(); !checked) return checked;
    return command.run(context);
  }();
  if (!result) return Report(result.error(), json);
  if (std::fflush(stdout) != 0)
    return Report({.code = Code::kDataLoss, .message = "Standard output cannot be written"}, false);
  return 0;
}

int Main(int argc, char** argv) {
  // Bulk messages allocate large blocks; returning each to the kernel halves the throughput.
  mallopt(M_MMAP_THRESHOLD, 64 << 20);
  mallopt(M_TRIM_THRESHOLD, 256 << 20);
  // Debian builds Abseil with deadlock detection, which records each lock that gRPC takes.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  signal(SIGPIPE, SIG_IGN);
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  if (arguments.empty() || arguments[0] == "--help" || arguments[0] == "-h" ||
      (arguments[0] == "help" && arguments.size() == 1)) {
    std::fputs(OverviewHelp().c_str(), arguments.empty() ? stderr : stdout);
    return arguments.empty() ? static_cast<int>(Code::kInvalidArgument) : 0;
  }
  if (arguments[0] == "--version") {
    std::printf("stride %s\n", STRIDE_VERSION);
    return 0;
  }
  const bool help = arguments[0] == "help";
  const Command* command = Find(help ? arguments[1] : arguments[0]);
  if (!command) return Report(UnknownCommand(help ? arguments[1] : arguments[0]), false);
  if (help) {
    std::fputs(CommandHelp(*command).c_str(), stdout);
    return 0;
  }
  return RunCommand(*command, std::span(arguments).subspan(1));
}

}  // namespace
}  // namespace stride::cli

int main(int argc, char** argv) { return stride::cli::Main(argc, argv); }
