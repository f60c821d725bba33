// A client's compile options, checked against the list that is allowed.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace stride::cpucuda {

struct Options {
  std::string standard = "c++17";
  std::vector<std::string> macros;  // "-DX=Y", "-UX"
  bool fast_math = false;
  bool contract = true;  // a*b+c may become one fused operation
  int optimization = 3;
  bool default_device = false;  // functions without an execution space are device functions
};

// INVALID_ARGUMENT with the first option that is not allowed.
absl::StatusOr<Options> ParseOptions(const std::vector<std::string>& arguments,
                                     bool contract_default);

}  // namespace stride::cpucuda
