// Results go where the user wants them.
#pragma once

#include <vector>

#include "client/cli/build_operation.h"
#include "client/cli/context.h"
#include "stride/client.h"

namespace stride::cli {

// -o, --raw, --device and --time, for the tables of commands that compute.
std::vector<OptionSpec> ResultOptions();

// Connects, builds the operation from the command line, runs it and gives out its results.
Result<void> ComputeAndEmit(Context& context, OperationBuilder build);

// Runs it, and waits when the timeline is wanted or when there is no array to tell a failure.
struct Computed {
  std::vector<Array> arrays;
  std::optional<Timeline> timeline;
};
Result<Computed> Compute(Context& context, Client& client, Operation operation);

// Fetches arrays into the files of -o, one for each; without -o small arrays are printed.
// `timeline` is told with --time and --json.
Result<void> Emit(Context& context, Client& client, const std::vector<Array>& arrays,
                  const std::optional<Timeline>& timeline, std::chrono::nanoseconds upload_time);

}  // namespace stride::cli
