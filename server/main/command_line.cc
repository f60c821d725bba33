#include "server/main/command_line.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <optional>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "server/main/option_table.h"
#include "server/main/suggestion.h"

namespace stride {
namespace {

absl::string_view ToAbsl(std::string_view text) { return {text.data(), text.size()}; }

absl::Status UnknownKey(const std::string& key) {
  std::vector<std::string> names;
  for (const Option& option : Options()) names.push_back(option.name);
  std::string near = Suggest(key, names);
  return absl::InvalidArgumentError(absl::StrCat(
      "unknown option: ", key, near.empty() ? "" : absl::StrCat("; did you mean ", near, "?")));
}

// The command line as assignments, and what is no configuration.
struct Flags {
  Command command = Command::kServe;
  std::optional<std::string> config_file;
  Assignments assignments;
};

absl::Status TakeFlag(const std::vector<std::string>& arguments, size_t* index, Flags* flags) {
  const std::string& argument = arguments[*index];
  if (argument == "-h" || argument == "--help") flags->command = Command::kHelp;
  if (argument == "--version") flags->command = Command::kVersion;
  if (argument == "-h" || argument == "--help" || argument == "--version") return absl::OkStatus();
  if (argument.rfind("--", 0) != 0 || argument.size() == 2) {
    return absl::InvalidArgumentError(
        absl::StrCat("not a flag: ", argument, "; see strided --help"));
  }
  size_t equals = argument.find('=');
  std::string key = argument.substr(2, equals == std::string::npos ? equals : equals - 2);
  const Option* option = FindOption(key);
  if (option == nullptr && key != "config") return UnknownKey(key);
  std::string value = "true";
  if (equals != std::string::npos) {
    value = argument.substr(equals + 1);
  } else if (option == nullptr || !option->value_name.empty()) {
    if (*index + 1 >= arguments.size())
      return absl::InvalidArgumentError(absl::StrCat("--", key, " needs a value"));
    value = arguments[++*index];
  }
  if (option == nullptr) {
    flags->config_file = value;
  } else {
    flags->assignments.emplace_back(key, value);
  }
  return absl::OkStatus();
}

absl::StatusOr<Assignments> ReadConfigFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text(std::istreambuf_iterator<char>(file), {});
  if (!file.good() && text.empty())
    return absl::NotFoundError(absl::StrCat("cannot read the configuration file ", path));
  auto assignments = ParseConfigFile(text);
  if (assignments.ok()) return assignments;
  return absl::InvalidArgumentError(absl::StrCat(path, ": ", assignments.status().message()));
}

bool IsListen(const std::pair<std::string, std::string>& assignment) {
  return assignment.first == "listen";
}

}  // namespace

absl::StatusOr<Assignments> ParseConfigFile(std::string_view text) {
  Assignments assignments;
  int number = 0;
  for (absl::string_view raw : absl::StrSplit(ToAbsl(text), '\n')) {
    ++number;
    absl::string_view line = absl::StripAsciiWhitespace(raw);
    if (line.empty() || line[0] == '#') continue;
    std::pair<absl::string_view, absl::string_view> sides =
        absl::StrSplit(line, absl::MaxSplits('=', 1));
    if (line.find('=') == absl::string_view::npos) {
      return absl::InvalidArgumentError(
          absl::StrCat("line ", number, ": not of the form key = value"));
    }
    std::string key(absl::StripAsciiWhitespace(sides.first));
    if (FindOption(key) == nullptr) {
      return absl::InvalidArgumentError(
          absl::StrCat("line ", number, ": ", UnknownKey(key).message()));
    }
    assignments.emplace_back(std::move(key), std::string(absl::StripAsciiWhitespace(sides.second)));
  }
  return assignments;
}

absl::Status Assign(const Assignments& assignments, Config* config) {
  for (const auto& [key, value] : assignments) {
    const Option* option = FindOption(key);
    if (option == nullptr) return UnknownKey(key);
    if (absl::Status status = option->set(value, config); !status.ok()) {
      return absl::InvalidArgumentError(absl::StrCat(key, " ", status.message(), ", not: ", value));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<Invocation> ParseCommandLine(const std::vector<std::string>& arguments) {
  Flags flags;
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (absl::Status status = TakeFlag(arguments, &i, &flags); !status.ok()) return status;
  }
  Invocation invocation;
  invocation.command = flags.command;
  if (flags.command != Command::kServe) return invocation;
  if (flags.config_file.has_value()) {
    auto file = ReadConfigFile(*flags.config_file);
    if (!file.ok()) return file.status();
    if (std::any_of(flags.assignments.begin(), flags.assignments.end(), IsListen)) {
      file->erase(std::remove_if(file->begin(), file->end(), IsListen), file->end());
    }
    if (absl::Status status = Assign(*file, &invocation.config); !status.ok()) {
      return absl::InvalidArgumentError(absl::StrCat(*flags.config_file, ": ", status.message()));
    }
  }
  if (absl::Status status = Assign(flags.assignments, &invocation.config); !status.ok())
    return status;
  return invocation;
}

std::string HelpText() {
  std::string text =
      "strided: the Stride daemon. It runs array jobs for its clients on the devices of this "
      "machine.\n\n"
      "Usage: strided [--config=FILE] [flags]\n\n"
      "  --config=FILE\n      Read `key = value` lines first; the keys are the flags below without "
      "dashes. Flags win.\n";
  for (const Option& option : Options()) {
    absl::StrAppend(&text, "  --", option.name, option.value_name.empty() ? "" : "=",
                    option.value_name, "\n      ", option.help, "\n");
  }
  return text + "  --help, --version\n";
}

}  // namespace stride
