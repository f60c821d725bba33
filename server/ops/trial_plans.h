#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "server/ops/client_function.h"
#include "server/wire/plan.pb.h"

namespace stride::ops {

// Returns the code of a typical use of the function on contiguous arrays for each loop. It checks
// that a text compiles, and later uses mostly need the same code. Empty if the function has no
// text.
absl::StatusOr<std::vector<wire::Code>> TrialCodes(const ClientFunction& function);

}  // namespace stride::ops
