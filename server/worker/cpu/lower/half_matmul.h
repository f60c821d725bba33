#pragma once

#include "absl/status/status.h"
#include "cpucuda/cpucuda.h"
#include "server/store/dtype.h"
#include "server/worker/cpu/lower/matrix.h"

namespace stride::cpu {

// The product of float16 or bfloat16 matrices, accumulated in float32 and rounded once: blocks are
// converted, multiplied by BLAS and converted back. The pool may be null: then this thread alone.
// RESOURCE_EXHAUSTED when there is no memory for the blocks.
absl::Status MultiplyHalf(cpucuda::ThreadPool* pool, DType dtype, const MatrixView& left,
                          const MatrixView& right, const MatrixView& output);

}  // namespace stride::cpu
