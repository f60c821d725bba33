#pragma once

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "server/ops/client_function.h"
#include "server/ops/operation_kinds.h"
#include "server/ops/plan.h"
#include "stride/v1/program_service.pb.h"

namespace stride::ops {

// The program for all elements of a batch at once, without its Batching: each operation by the rule
// of its kind, with views around it that put axes in their places. Within it the batch's axis comes
// first. `inputs` have the batch's axis. UNIMPLEMENTED names an operation without a rule; other
// errors have paths within the Program.
absl::StatusOr<v1::Program> BatchProgram(const v1::Program& program,
                                         absl::Span<const ArrayInfo> inputs,
                                         const FunctionTable* functions,
                                         const KindTable& kinds = Kinds());

}  // namespace stride::ops
