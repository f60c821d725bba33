#pragma once

#include "absl/status/status.h"
#include "server/store/dtype.h"
#include "server/worker/cpu/lower/matrix.h"

namespace stride::cpu {

// output = left right (+ output, when `accumulate`). The output's columns are contiguous and its
// rows apart by a multiple of the item size. Operands that BLAS cannot walk are copied first.
// float32, float64, complex64 and complex128; sizes of any 64 bits. RESOURCE_EXHAUSTED when there
// is no memory for a copy. Uses as many threads as SetBlasThreads said last.
absl::Status MultiplyByBlas(DType dtype, const MatrixView& left, const MatrixView& right,
                            const MatrixView& output, bool accumulate = false);

// For the calls of all threads; the library keeps its own threads beside ours.
void SetBlasThreads(int num_threads);
// Has the library start the threads that SetBlasThreads may ever ask for: before the process is
// sealed, after which none can be started. They sleep.
void StartBlasThreads(int num_threads);

}  // namespace stride::cpu
