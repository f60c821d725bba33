#pragma once

#include <cuda.h>

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "server/store/dtype.h"

namespace stride::cuda {

// A matrix in BLAS terms: address of its first element, stride between runs, stride between
// batches; in elements.
struct BlasMatrix {
  CUdeviceptr address = 0;
  int64_t leading = 0;
  int64_t batch_stride = 0;
  bool transposed = false;
};

// cuBLAS, opened at run time. Products of row-major matrices, float32 in full precision (no TF32),
// 16-bit floats accumulated in float32. Not thread-safe.
class Blas {
 public:
  // Opens the library: UNAVAILABLE when it is not installed. Needs no context.
  static absl::StatusOr<std::unique_ptr<Blas>> Open();
  ~Blas();

  static bool Supports(DType dtype);

  // C[b] = A[b] B[b] for row-major C (m x n), contiguous runs of n. The first call creates the
  // library's handle, which takes long.
  absl::Status Multiply(CUstream stream, DType dtype, int64_t m, int64_t n, int64_t k,
                        const BlasMatrix& left, const BlasMatrix& right, const BlasMatrix& output,
                        int64_t batch_count);

 private:
  struct Functions;
  explicit Blas(std::unique_ptr<Functions> functions);
  absl::Status Prepare(CUstream stream);
  // Sets the stream of the next product: the tasks' stream, or the one under capture.
  absl::Status UseStream(CUstream stream);
  // Requires that m or n is 1. Returns the library's status, a cublasStatus_t.
  int MultiplyVector(DType dtype, int64_t m, int64_t n, int64_t k, const BlasMatrix& left,
                     const BlasMatrix& right, const BlasMatrix& output);

  const std::unique_ptr<Functions> functions_;
  void* handle_ = nullptr;
  CUstream stream_ = nullptr;
};

}  // namespace stride::cuda
