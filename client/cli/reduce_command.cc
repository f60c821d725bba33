#include "client/cli/build_operation.h"
#include "client/cli/command.h"
#include "client/cli/emit.h"

namespace stride::cli {
namespace {

Result<void> Run(Context& context) {
  auto client = context.Connect();
  if (!client) return client.error();
  UploadingSource source(context, **client);
  auto operation = BuildReduce(context.line().positionals(), context.line(), source);
  if (!operation) return operation.error();
  return ComputeAndEmit(context, **client, *operation, source.upload_time());
}

std::vector<OptionSpec> Options() {
  auto options = ResultOptions();
  options.push_back(DataTypeOption()[0]);
  for (auto& option : ReduceOptionSpecs()) options.push_back(option);
  return options;
}

}  // namespace

const Command& ReduceCommand() {
  static const Command kCommand = {
      .name = "reduce",
      .summary = "reduce an array along axes: sum, mean, argmax, norm, ...",
      .usage = "FUNCTION ARRAY [--axis N]",
      .details = "FUNCTION: sum, prod, min, max, mean, any, all, argmin, argmax, norm.",
      .options = Options(),
      .run = Run};
  return kCommand;
}

}  // namespace stride::cli
