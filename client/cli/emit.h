// Results go where the user wants them.
#pragma once

#include <vector>

#include "client/cli/context.h"
#include "stride/client.h"

namespace stride::cli {

// -o, --raw, --device and --time, for the tables of commands that compute.
std::vector<OptionSpec> ResultOptions();

// Runs the operation and gives out its results.
Result<void> ComputeAndEmit(Context& context, Client& client, Operation operation,
                            std::chrono::nanoseconds upload_time);

// Fetches arrays into the files of -o, one for each; without -o small arrays are printed.
// `timeline` is told with --time and --json.
Result<void> Emit(Context& context, Client& client, const std::vector<Array>& arrays,
                  const std::optional<Timeline>& timeline, std::chrono::nanoseconds upload_time);

}  // namespace stride::cli
