#pragma once

#include <cuda.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "server/store/dtype.h"
#include "server/worker/cuda/driver/driver.h"
#include "server/worker/cuda/lower/solver.h"

namespace stride::cuda {

// Routines of cuBLAS and cuSOLVER for many small matrices in one call. Matrices are column-major
// without gaps, of float32, float64, complex64 or complex128; `pointers` is a device array with the
// address of each. Calls enqueue on the stream. Each writes `count` ints to `infos` on the device:
// 0, or above 0 the fault of that matrix. Not thread-safe.
class BatchSolver {
 public:
  // Opens both libraries and creates their handles. UNIMPLEMENTED where one is not installed.
  static absl::StatusOr<std::unique_ptr<BatchSolver>> Open(const Driver& driver, CUstream stream);
  ~BatchSolver();

  absl::Status Cholesky(DType dtype, bool upper, int64_t n, CUdeviceptr pointers, CUdeviceptr infos,
                        int64_t count);

  // Pivots are int32, n for each matrix, from 1.
  absl::Status Lu(DType dtype, int64_t n, CUdeviceptr pointers, CUdeviceptr pivots,
                  CUdeviceptr infos, int64_t count);
  absl::Status SolveByLu(DType dtype, int64_t n, int64_t num_right, CUdeviceptr lu_pointers,
                         CUdeviceptr pivots, CUdeviceptr right_pointers, int64_t count);

  // Like Solver::Eigh, for `count` consecutive matrices in `a`. False: the installed cuSOLVER
  // (before CUDA 12.6) has no such routine.
  bool HasEigh() const;
  absl::StatusOr<SolverWork> EighWork(DType dtype, bool vectors, bool upper, int64_t n,
                                      CUdeviceptr sample, int64_t count);
  absl::Status Eigh(DType dtype, bool vectors, bool upper, int64_t n, CUdeviceptr a, CUdeviceptr w,
                    int64_t count, const Solver::Call& call);

  // At most kMostSvd rows and columns. `u` gets an m x m matrix for each, `v` an n x n matrix: V,
  // not its transpose. Overwrites `a`. There is no call without vectors, since the library
  // (cuSOLVER 12.0) returned wrong values and trapped.
  static constexpr int64_t kMostSvd = 32;
  absl::StatusOr<SolverWork> SvdWork(DType dtype, int64_t m, int64_t n, CUdeviceptr sample,
                                     int64_t count);
  absl::Status Svd(DType dtype, int64_t m, int64_t n, CUdeviceptr a, CUdeviceptr s, CUdeviceptr u,
                   CUdeviceptr v, int64_t count, const Solver::Call& call);

 private:
  struct Functions;
  BatchSolver(const Driver& driver, CUstream stream, std::unique_ptr<Functions> functions);
  absl::Status Start();

  const Driver& driver_;
  const CUstream stream_;
  const std::unique_ptr<Functions> functions_;
  void* blas_ = nullptr;
  void* solver_ = nullptr;
  void* parameters_ = nullptr;
  void* jacobi_ = nullptr;
  std::vector<std::byte> host_work_;
};

}  // namespace stride::cuda
