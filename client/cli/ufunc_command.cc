#include "client/cli/build_operation.h"
#include "client/cli/command.h"
#include "client/cli/emit.h"

namespace stride::cli {
namespace {

Result<void> Run(Context& context) {
  auto client = context.Connect();
  if (!client) return client.error();
  UploadingSource source(context, **client);
  auto operation = BuildUfunc(context.line().positionals(), context.line(), source);
  if (!operation) return operation.error();
  return ComputeAndEmit(context, **client, *operation, source.upload_time());
}

std::vector<OptionSpec> Options() {
  auto options = ResultOptions();
  options.push_back(DataTypeOption()[0]);
  return options;
}

}  // namespace

const Command& UfuncCommand() {
  static const Command kCommand = {.name = "ufunc",
                                   .summary = "compute a NumPy ufunc or an expression",
                                   .usage = "NAME ARRAY... | EXPRESSION x=ARRAY...",
                                   .details =
                                       "An ARRAY is a .npy file, - (standard input), @NAME (kept "
                                       "by the daemon) or a number such as 2.5 or 2:int16.",
                                   .options = Options(),
                                   .run = Run};
  return kCommand;
}

}  // namespace stride::cli
