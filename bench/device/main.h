// The common main function of the programs here.
#pragma once

#include <cstdio>
#include <optional>
#include <string>

#include "bench/device/check.h"
#include "bench/service/report.h"

namespace stride::bench {

// For `main`: its exit code. `options`: the command line's; none: it was wrong. `run` takes them
// and a report, which goes to their file of JSON.
template <typename Options, typename Run>
int RunProgram(const std::optional<Options>& options, const char* usage, Run run) {
  if (!options) {
    std::fputs(usage, stderr);
    return 2;
  }
  Report report;
  run(*options, report);
  if (options->json.empty() || report.WriteJson(options->json)) return 0;
  Die("cannot write " + options->json);
}

}  // namespace stride::bench
