#pragma once

#include <string_view>

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

// The instruction sets that decide which of the library's kernels suit a processor.
struct VectorSets {
  bool avx2 = false;    // with FMA
  bool avx512 = false;  // with BW, DQ and VL
};
// The value of OPENBLAS_CORETYPE for a processor with these, where the library chose kernels
// without them. It chooses by the processor's model, and takes `Prescott` for a model that is newer
// than the library: a product was 3.6 times slower on a Xeon of 2023. Empty: its choice stays.
std::string_view BetterBlasCore(std::string_view chosen, const VectorSets& sets);
// Begins the process again with that environment variable, unless the variable is set or the
// library chose well. Call it before anything else; the library chooses before `main`.
void ChooseBlasCore(char** argv);

}  // namespace stride::cpu
