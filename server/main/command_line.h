#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/main/config.h"

namespace stride {

// The action that the command line requests.
enum class Command { kServe, kHelp, kVersion };

struct Invocation {
  Command command = Command::kServe;
  Config config;
};

// Reads `--key=value`, `--key value` and `--switch`. The file of --config is read first, so that
// flags override its values; the addresses of `listen` replace those of the file. INVALID_ARGUMENT
// names the key and the problem.
absl::StatusOr<Invocation> ParseCommandLine(const std::vector<std::string>& arguments);

// Reads `key = value` lines in their order; `#` starts a comment line. Values are not checked.
using Assignments = std::vector<std::pair<std::string, std::string>>;
absl::StatusOr<Assignments> ParseConfigFile(std::string_view text);

absl::Status Assign(const Assignments& assignments, Config* config);

// The text of --help.
std::string HelpText();

}  // namespace stride
