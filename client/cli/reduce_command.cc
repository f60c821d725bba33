#include "client/cli/build_operation.h"
#include "client/cli/command.h"
#include "client/cli/emit.h"

namespace stride::cli {
namespace {

Result<void> Run(Context& context) { return ComputeAndEmit(context, BuildReduce); }

}  // namespace

const Command& ReduceCommand() {
  static const Command kCommand = {
      .name = "reduce",
      .summary = "reduce an array along axes: sum, mean, argmax, norm, ...",
      .usage = "FUNCTION ARRAY [--axis N]",
      .details =
          "FUNCTION: sum, prod, min, max, mean, any, all, argmin, argmax, norm, count_nonzero, "
          "var, "
          "std.",
      .options = JoinOptions({ResultOptions(), ReduceOptionSpecs()}),
      .run = Run};
  return kCommand;
}

}  // namespace stride::cli
