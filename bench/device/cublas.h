#pragma once

#include <cuda.h>

#include <memory>

#include "server/store/dtype.h"

namespace stride::bench {

// cuBLAS as a C++ program calls it, in its default math mode: float32 stays float32 (no TF32). Ends
// the process when something fails.
class Cublas {
 public:
  // Uses the current context.
  explicit Cublas(CUstream stream);
  ~Cublas();
  Cublas(const Cublas&) = delete;
  Cublas& operator=(const Cublas&) = delete;

  // left (m x k) by right (k x n), row-major and without gaps; `right_transposed`: it lies as n x
  // k.
  struct Product {
    int m = 0, n = 0, k = 0;
    CUdeviceptr left = 0, right = 0, output = 0;
    bool right_transposed = false;
  };
  // Enqueues cublasSgemm or cublasDgemm.
  void Multiply(DType dtype, const Product& product);
  // Enqueues cublasSgemv: a vector of `rows` float32 by a contiguous row-major matrix.
  void VectorByMatrix(int rows, int columns, CUdeviceptr vector, CUdeviceptr matrix,
                      CUdeviceptr output);
  // cublasSdot: one float32 of device memory.
  void Dot(int count, CUdeviceptr left, CUdeviceptr right, CUdeviceptr output);
  // cublasSgeam: the transpose of a square matrix of float32; `added`, if not 0, is added to it.
  void Transpose(int side, CUdeviceptr matrix, CUdeviceptr added, CUdeviceptr output);
  // cublasDgemmStridedBatched, of square matrices of float64.
  void MultiplyBatch(int side, int count, CUdeviceptr left, CUdeviceptr right, CUdeviceptr output);
  // cublasGemmEx of square matrices of int8 with sums in int32, the right one transposed, which is
  // the layout that tensor cores read.
  void MultiplyBytes(int side, CUdeviceptr left, CUdeviceptr right, CUdeviceptr output);
  // cublasDgetrfBatched and cublasDgetrsBatched, of square matrices of float64 and a vector for
  // each, all of them overwritten. Matrices are column-major. `matrices` and `vectors` are arrays
  // of addresses in device memory; `pivots` and `errors` have an int32 for each row, and for each
  // matrix.
  struct Systems {
    int side = 0, count = 0;
    CUdeviceptr matrices = 0, vectors = 0, pivots = 0, errors = 0;
  };
  void SolveBatch(const Systems& systems);

 private:
  struct Functions;
  const std::unique_ptr<const Functions> functions_;
  void* handle_ = nullptr;
};

}  // namespace stride::bench
