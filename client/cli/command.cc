#include "client/cli/command.h"

#include <array>

namespace stride::cli {
namespace {

std::string OptionLines(std::span<const OptionSpec> options) {
  std::string text;
  for (const auto& option : options) {
    std::string left = option.short_name ? std::string("-") + option.short_name + ", " : "    ";
    left += "--" + option.name + (option.value_name.empty() ? "" : " " + option.value_name);
    left.resize(std::max<size_t>(left.size() + 2, 28), ' ');
    text += "  " + left + option.help + "\n";
  }
  return text;
}

}  // namespace

std::span<const Command* const> AllCommands() {
  static const std::vector<const Command*>* const kAll = [] {
    auto* all = new std::vector<const Command*>{
        &DevicesCommand(), &TopCommand(),   &PutCommand(),    &GetCommand(),   &LsCommand(),
        &RmCommand(),      &UfuncCommand(), &ReduceCommand(), &MatmulCommand()};
    for (const Command& command : ArrayCommands()) all->push_back(&command);
    all->insert(all->end(), {&KernelCommand(), &JobsCommand(), &UsageCommand(), &TokenCommand(),
                             &DoctorCommand(), &BenchCommand()});
    return all;
  }();
  return *kAll;
}

std::span<const OptionSpec> CommonOptions() {
  static const std::array<OptionSpec, 9> kCommon = {
      {{"address", 0, "ADDRESS",
        "the daemon, such as unix:/run/stride/stride.sock or tcp:localhost:7433"},
       {"tls-ca", 0, "FILE", "use TLS; authority of the daemon's certificate, or `system`"},
       {"tls-cert", 0, "FILE", "this client's certificate, if the daemon requires one"},
       {"tls-key", 0, "FILE", "private key of the certificate"},
       {"token-file", 0, "FILE", "file with the bearer token; default: STRIDE_TOKEN"},
       {"timeout", 0, "TIME", "longest time for a call, such as 30, 1.5s or 2m"},
       {"json", 0, "", "answer as JSON on standard output"},
       {"quiet", 'q', "", "no progress and no notes"},
       {"help", 'h', "", "show this"}}};
  return kCommon;
}

std::string CommandHelp(const Command& command) {
  std::string text =
      command.summary + "\n\nUsage: stride " + command.name + " " + command.usage + "\n";
  if (!command.details.empty()) text += "\n" + command.details + "\n";
  text += "\nOptions:\n" + OptionLines(command.options) + OptionLines(CommonOptions());
  return text;
}

std::string OverviewHelp() {
  std::string text =
      "Arrays, kernels and ufuncs on the GPUs (or the CPU) of a Stride daemon.\n\nUsage: stride "
      "COMMAND [OPTIONS]\n\n";
  for (const Command* command : AllCommands()) {
    std::string name = command->name;
    name.resize(12, ' ');
    text += "  " + name + command->summary + "\n";
  }
  text += "\nOptions of every command:\n" + OptionLines(CommonOptions()) +
          "\nThe daemon is --address, else STRIDE_ADDRESS, else the socket in XDG_RUNTIME_DIR or "
          "/run/stride; with none of them\n"
          "running, commands that keep nothing start a private one. Exit codes are gRPC's: 0 good, "
          "3 a wrong argument, 5 not found,\n"
          "14 no daemon, ...; 130 interrupted.\n\nExamples:\n"
          "  stride ufunc 'cos(x)**2 + sin(x)**2' x=x.npy -o y.npy\n"
          "  stride reduce sum x.npy --axis 0\n"
          "  stride kernel add.cu --entry add --grid 32 --block 128 a.npy b.npy out:int32[4096] "
          "4096:int32 -o c.npy\n";
  return text;
}

Error UsageError(const Command& command, const std::string& message) {
  return {.code = Code::kInvalidArgument,
          .message = message + "\nUsage: stride " + command.name + " " + command.usage +
                     "  (more: stride " + command.name + " --help)"};
}

}  // namespace stride::cli
