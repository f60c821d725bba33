#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "server/ops/client_function.h"
#include "server/wire/plan.pb.h"

namespace stride::ops {

// The code of an ordinary use of the function, on contiguous arrays, for each of its loops: what
// has to compile, and what later uses mostly are. None, when the function holds no text.
absl::StatusOr<std::vector<wire::Code>> TrialCodes(const ClientFunction& function);

}  // namespace stride::ops
