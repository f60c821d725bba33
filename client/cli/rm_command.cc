#include "client/cli/argument.h"
#include "client/cli/command.h"

namespace stride::cli {
namespace {

Result<void> Run(Context& context) {
  const auto& arguments = context.line().positionals();
  if (arguments.empty()) return UsageError(RmCommand(), "rm takes one name or more");
  auto client = context.Connect(/*keeps_state=*/true);
  if (!client) return client.error();
  for (const auto& argument : arguments) {
    auto deleted = (*client)->DeleteArray(FullArrayName(argument), context.Call());
    if (!deleted) return deleted;
    context.Note("Deleted " + FullArrayName(argument));
  }
  return {};
}

}  // namespace

const Command& RmCommand() {
  static const Command kCommand = {
      .name = "rm", .summary = "delete named arrays", .usage = "NAME...", .run = Run};
  return kCommand;
}

}  // namespace stride::cli
