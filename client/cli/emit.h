// Writes results to files or to standard output.
#pragma once

#include <vector>

#include "client/cli/build_operation.h"
#include "client/cli/context.h"
#include "stride/client.h"

namespace stride::cli {

// Options -o, --raw, --device and --time, for the tables of commands that compute.
std::vector<OptionSpec> ResultOptions();

// Connects, builds the operation from the command line, runs it and writes its results.
Result<void> ComputeAndEmit(Context& context, OperationBuilder build);

// Runs the operation. Waits for its end with --time or --json, and when no result array can carry a
// failure.
struct Computed {
  std::vector<Array> arrays;
  std::optional<Timeline> timeline;
};
Result<Computed> Compute(Context& context, Client& client, Operation operation);

// Fetches arrays into the files of -o, one file per array; without -o prints small arrays. --time
// and --json include `timeline`.
Result<void> Emit(Context& context, Client& client, const std::vector<Array>& arrays,
                  const std::optional<Timeline>& timeline, std::chrono::nanoseconds upload_time);

}  // namespace stride::cli
