#pragma once

#include <cuda.h>

#include <memory>

#include "server/store/dtype.h"

namespace stride::bench {

// cuSOLVER as a C++ program calls it. Matrices are square, column-major and overwritten. Work space
// is the caller's. Ends the process when something fails.
class Cusolver {
 public:
  // Uses the current context.
  explicit Cusolver(CUstream stream);
  ~Cusolver();
  Cusolver(const Cusolver&) = delete;
  Cusolver& operator=(const Cusolver&) = delete;

  struct Matrix {
    int side = 0;
    CUdeviceptr address = 0;
    CUdeviceptr work = 0;    // as many elements as the functions below say
    CUdeviceptr pivots = 0;  // an int32 for each row
    CUdeviceptr error = 0;   // one int32, or one for each matrix
  };
  // The upper factor of float32 or float64, which is the lower one of row-major matrices.
  int CholeskyElements(DType dtype, int side);
  void Cholesky(DType dtype, const Matrix& matrix, int num_elements);
  // `address` is an array of the matrices' addresses in device memory. No work space.
  void CholeskyBatch(const Matrix& matrices, int count);
  // LU factors of float64, then the solutions for `count` columns, which they overwrite.
  int SolveElements(int side);
  void Solve(const Matrix& matrix, CUdeviceptr columns, int count);

 private:
  struct Functions;
  const std::unique_ptr<const Functions> functions_;
  void* handle_ = nullptr;
};

}  // namespace stride::bench
