#include "client/cli/build_operation.h"
#include "client/cli/command.h"
#include "client/cli/emit.h"

namespace stride::cli {
namespace {

Result<void> Run(Context& context) { return ComputeAndEmit(context, BuildUfunc); }

}  // namespace

const Command& UfuncCommand() {
  static const Command kCommand = {.name = "ufunc",
                                   .summary = "compute a NumPy ufunc or an expression",
                                   .usage = "NAME ARRAY... | EXPRESSION x=ARRAY...",
                                   .details =
                                       "An ARRAY is a .npy file, - (standard input), @NAME (kept "
                                       "by the daemon) or a number such as 2.5 or 2:int16.",
                                   .options = JoinOptions({ResultOptions(), UfuncOptionSpecs()}),
                                   .run = Run};
  return kCommand;
}

}  // namespace stride::cli
