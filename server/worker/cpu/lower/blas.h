#pragma once

#include <string_view>

#include "absl/status/status.h"
#include "server/store/dtype.h"
#include "server/worker/cpu/lower/matrix.h"

namespace stride::cpu {

// output = left right (+ output, when `accumulate`). The output's columns are contiguous, and its
// row stride is a multiple of the item size. Copies operands with strides that BLAS does not
// support. float32, float64, complex64 and complex128; sizes of 64 bits. RESOURCE_EXHAUSTED when
// there is no memory for a copy. Uses as many threads as the last SetBlasThreads allows.
absl::Status MultiplyByBlas(DType dtype, const MatrixView& left, const MatrixView& right,
                            const MatrixView& output, bool accumulate = false);

// Applies to calls of all threads; the library has its own threads in addition to the pool's.
void SetBlasThreads(int num_threads);
// Starts the threads that later SetBlasThreads calls may use, which then sleep. Call before the
// process is sealed, since no thread can start afterwards.
void StartBlasThreads(int num_threads);

// Instruction sets that decide which of the library's kernels suit a processor.
struct VectorSets {
  bool avx2 = false;    // with FMA
  bool avx512 = false;  // with BW, DQ and VL
};
// Value of OPENBLAS_CORETYPE for a processor with these instruction sets, if the library chose
// kernels without them; empty: keep its choice. The library chooses by the processor's model and
// takes `Prescott` for unknown newer ones: a product was 3.6 times slower on a Xeon of 2023.
std::string_view BetterBlasCore(std::string_view chosen, const VectorSets& sets);
// Executes the process again with that environment variable, unless the variable is set or the
// library's choice is good. Call it first in main; the library chooses before `main`.
void ChooseBlasCore(char** argv);

}  // namespace stride::cpu
