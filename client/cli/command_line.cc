#include "client/cli/command_line.h"

#include <algorithm>

#include "client/cli/suggest.h"

namespace stride::cli {
namespace {

Error Usage(std::string message) {
  return {.code = Code::kInvalidArgument, .message = std::move(message)};
}

bool IsOption(const std::string& argument) {
  if (argument.size() < 2 || argument[0] != '-') return false;
  const char next = argument[1];
  // `-5:int32` and `-.5` are numbers.
  return !(next >= '0' && next <= '9') && next != '.';
}

const OptionSpec* FindLong(std::string_view name, std::span<const OptionSpec> options) {
  const auto it =
      std::find_if(options.begin(), options.end(), [&](const auto& o) { return o.name == name; });
  return it == options.end() ? nullptr : &*it;
}

const OptionSpec* FindShort(char name, std::span<const OptionSpec> options) {
  const auto it = std::find_if(options.begin(), options.end(),
                               [&](const auto& o) { return o.short_name == name; });
  return it == options.end() ? nullptr : &*it;
}

Error Unknown(const std::string& argument, std::span<const OptionSpec> options) {
  std::vector<std::string> names;
  for (const auto& option : options) names.push_back("--" + option.name);
  const std::string near = Suggest(argument.substr(0, argument.find('=')), names);
  return Usage("Unknown option " + argument + (near.empty() ? "" : ". Did you mean " + near + "?"));
}

// A parsed option: its spec, and its value where the same argument contains one.
struct Found {
  const OptionSpec* spec = nullptr;
  std::optional<std::string> value;
};

Found Find(const std::string& argument, std::span<const OptionSpec> options) {
  if (argument.starts_with("--")) {
    const size_t equals = argument.find('=');
    Found found{FindLong(
        std::string_view(argument).substr(2, equals == std::string::npos ? equals : equals - 2),
        options)};
    if (equals != std::string::npos) found.value = argument.substr(equals + 1);
    return found;
  }
  Found found{FindShort(argument[1], options)};
  if (argument.size() > 2) found.value = argument.substr(2);
  return found;
}

}  // namespace

std::vector<OptionSpec> JoinOptions(std::initializer_list<std::vector<OptionSpec>> tables) {
  std::vector<OptionSpec> all;
  for (const auto& table : tables) all.insert(all.end(), table.begin(), table.end());
  return all;
}

Result<CommandLine> CommandLine::Parse(std::span<const std::string> arguments,
                                       std::span<const OptionSpec> options) {
  CommandLine line;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string& argument = arguments[i];
    if (argument == "--") {
      line.positionals_.insert(line.positionals_.end(), arguments.begin() + i + 1, arguments.end());
      break;
    }
    if (!IsOption(argument)) {
      line.positionals_.push_back(argument);
      continue;
    }
    Found found = Find(argument, options);
    if (!found.spec) return Unknown(argument, options);
    const bool wants_value = !found.spec->value_name.empty();
    if (!wants_value && found.value) return Usage("--" + found.spec->name + " takes no value");
    if (wants_value && !found.value) {
      if (i + 1 == arguments.size())
        return Usage("--" + found.spec->name + " needs a value (" + found.spec->value_name + ")");
      found.value = arguments[++i];
    }
    line.values_[found.spec->name].push_back(found.value.value_or(""));
  }
  return line;
}

std::optional<std::string> CommandLine::Value(const std::string& name) const {
  const auto it = values_.find(name);
  if (it == values_.end()) return std::nullopt;
  return it->second.back();
}

std::vector<std::string> CommandLine::Values(const std::string& name) const {
  const auto it = values_.find(name);
  return it == values_.end() ? std::vector<std::string>{} : it->second;
}

}  // namespace stride::cli
