// Options and positionals of one command.
#pragma once

#include <initializer_list>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "stride/result.h"

namespace stride::cli {

struct OptionSpec {
  std::string name;        // `address` for --address
  char short_name = 0;     // 'o' for -o; 0: none
  std::string value_name;  // `FILE`; empty: a switch
  std::string help;
};

// Concatenates several tables of options.
std::vector<OptionSpec> JoinOptions(std::initializer_list<std::vector<OptionSpec>> tables);

class CommandLine {
 public:
  // Options may be anywhere: `--name value`, `--name=value`, `-o value` or `-ovalue`; `--` ends
  // them. `-` and negative numbers are positionals. INVALID_ARGUMENT with a suggestion for an
  // unknown option.
  static Result<CommandLine> Parse(std::span<const std::string> arguments,
                                   std::span<const OptionSpec> options);

  bool Has(const std::string& name) const { return values_.contains(name); }
  // Returns the last value of the option.
  std::optional<std::string> Value(const std::string& name) const;
  // Returns every value of the option, in order.
  std::vector<std::string> Values(const std::string& name) const;
  const std::vector<std::string>& positionals() const { return positionals_; }

 private:
  std::map<std::string, std::vector<std::string>> values_;
  std::vector<std::string> positionals_;
};

}  // namespace stride::cli
