#include "client/cli/build_operation.h"
#include "client/cli/command.h"
#include "client/cli/emit.h"

namespace stride::cli {
namespace {

Result<void> Run(Context& context) {
  if (context.line().positionals().size() != 2)
    return UsageError(MatmulCommand(), "matmul takes two arrays");
  return ComputeAndEmit(context, BuildMatmul);
}

}  // namespace

const Command& MatmulCommand() {
  static const Command kCommand = {.name = "matmul",
                                   .summary = "multiply matrices and vectors",
                                   .usage = "LEFT RIGHT",
                                   .details = "NumPy's matmul, with batch axes broadcast.",
                                   .options = ResultOptions(),
                                   .run = Run};
  return kCommand;
}

}  // namespace stride::cli
