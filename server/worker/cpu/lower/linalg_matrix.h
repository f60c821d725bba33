#pragma once

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "server/store/dtype.h"
#include "server/wire/plan.pb.h"
#include "server/worker/codegen/routine_fault.h"
#include "server/worker/cpu/lower/matrix.h"

namespace stride::cpu {

// A decomposition or a linear system of one matrix, from wire::LinalgLaunch.
struct LinalgProblem {
  wire::LinalgLaunch::Function function = wire::LinalgLaunch::FUNCTION_UNSPECIFIED;
  int m = 0, n = 0, k = 0;
  bool upper = false, full = false, values_only = false;
  DType dtype = DType::kFloat64;
};

// Fault of one matrix's data; kNone: no fault.
struct LinalgFinding {
  codegen::RoutineFault::Kind kind = codegen::RoutineFault::kNone;
  int info = 0;
};

// Computes with LAPACK on copies in its order. Vectors are matrices of one column.
// RESOURCE_EXHAUSTED when there is no memory for the copies, UNIMPLEMENTED when the library's
// 32-bit counts overflow.
absl::Status ComputeLinalg(const LinalgProblem& problem, absl::Span<const MatrixView> inputs,
                           absl::Span<const MatrixView> outputs, LinalgFinding* finding);

}  // namespace stride::cpu
