#include "client/cli/argument.h"
#include "client/cli/command.h"
#include "client/cli/emit.h"

namespace stride::cli {
namespace {

Result<void> Run(Context& context) {
  const auto& arguments = context.line().positionals();
  if (arguments.size() != 1) return UsageError(GetCommand(), "get takes one name");
  auto client = context.Connect(/*keeps_state=*/true);
  if (!client) return client.error();
  std::vector<Array> arrays;
  arrays.push_back((*client)->Open(FullArrayName(arguments[0])));
  return Emit(context, **client, arrays, std::nullopt, {});
}

}  // namespace

const Command& GetCommand() {
  static const Command kCommand = {
      .name = "get",
      .summary = "fetch a named array",
      .usage = "NAME [-o FILE]",
      .details = "Without -o a small array is printed.",
      .options = {{"output", 'o', "FILE", "write it as .npy; `-` is standard output"},
                  {"raw", 0, "", "write the elements alone, without a .npy header"},
                  {"time", 0, "", "print where the time went, on standard error"}},
      .run = Run};
  return kCommand;
}

}  // namespace stride::cli
