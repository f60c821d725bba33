// The commands of `stride`, one file each.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "client/cli/command_line.h"
#include "client/cli/context.h"

namespace stride::cli {

struct Command {
  std::string name;
  std::string summary;
  std::string usage;  // after `stride NAME `
  std::string details;
  std::vector<OptionSpec> options;
  Result<void> (*run)(Context&);
};

const Command& DevicesCommand();
const Command& TopCommand();
const Command& PutCommand();
const Command& GetCommand();
const Command& LsCommand();
const Command& RmCommand();
const Command& UfuncCommand();
const Command& ReduceCommand();
const Command& MatmulCommand();
std::span<const Command> ArrayCommands();
const Command& KernelCommand();
const Command& JobsCommand();
const Command& UsageCommand();
const Command& TokenCommand();
const Command& DoctorCommand();
const Command& BenchCommand();

// All commands in the order of the help.
std::span<const Command* const> AllCommands();
// Options of every command.
std::span<const OptionSpec> CommonOptions();

std::string CommandHelp(const Command& command);
std::string OverviewHelp();

// Returns INVALID_ARGUMENT with the command's usage.
Error UsageError(const Command& command, const std::string& message);

}  // namespace stride::cli
