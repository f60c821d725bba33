#pragma once

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "server/ops/program_plan.h"

namespace stride::ops {

// Plans the bodies of `step`, a loop or a branch, for their inputs, and determines the step's
// results. Errors have paths within the operation.
absl::Status PlanBodies(absl::Span<const Input> inputs, absl::Span<const Input> existing,
                        const FunctionTable* functions, ProgramStep* step);

}  // namespace stride::ops
