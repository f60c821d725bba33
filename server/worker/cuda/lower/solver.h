#pragma once

#include <cuda.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "server/store/dtype.h"
#include "server/worker/cuda/driver.h"

namespace stride::cuda {

// Memory that one call of the library works in.
struct SolverWork {
  uint64_t device_bytes = 0;
  uint64_t host_bytes = 0;
};

// cuSOLVER's dense routines, opened at run time. Matrices are column-major without gaps, of
// float32, float64, complex64 or complex128. Calls enqueue on the stream; some wait for the device
// in between. Each writes an int to `info` on the device: 0, or above 0 what it found in the data.
// The ...Work functions tell what memory the call needs; `sample` is any array of the dtype on the
// device. Not thread-safe.
class Solver {
 public:
  // Opens the library: UNIMPLEMENTED when it is not installed. Makes its handle, which takes long.
  static absl::StatusOr<std::unique_ptr<Solver>> Open(const Driver& driver, CUstream stream);
  ~Solver();

  // Where a call works and reports.
  struct Call {
    CUdeviceptr work = 0;
    SolverWork size;
    CUdeviceptr info = 0;
  };

  absl::StatusOr<SolverWork> CholeskyWork(DType dtype, bool upper, int64_t n, CUdeviceptr sample);
  absl::Status Cholesky(DType dtype, bool upper, int64_t n, CUdeviceptr a, const Call& call);

  // Pivots are int64, from 1.
  absl::StatusOr<SolverWork> LuWork(DType dtype, int64_t m, int64_t n, CUdeviceptr sample);
  absl::Status Lu(DType dtype, int64_t m, int64_t n, CUdeviceptr a, CUdeviceptr pivots,
                  const Call& call);
  absl::Status SolveByLu(DType dtype, int64_t n, int64_t num_right, CUdeviceptr lu,
                         CUdeviceptr pivots, CUdeviceptr b, CUdeviceptr info);

  absl::StatusOr<SolverWork> QrWork(DType dtype, int64_t m, int64_t n, CUdeviceptr sample);
  absl::Status Qr(DType dtype, int64_t m, int64_t n, CUdeviceptr a, CUdeviceptr tau,
                  const Call& call);
  // Q's first columns, in place of the reflectors that Qr left.
  absl::StatusOr<SolverWork> QWork(DType dtype, int64_t m, int64_t columns, int64_t num_reflectors,
                                   CUdeviceptr sample);
  absl::Status Q(DType dtype, int64_t m, int64_t columns, int64_t num_reflectors, CUdeviceptr a,
                 CUdeviceptr tau, const Call& call);

  // Of m >= n only. `vectors`: 'A', 'S' or 'N'. `a` is lost.
  absl::StatusOr<SolverWork> SvdWork(DType dtype, char vectors, int64_t m, int64_t n,
                                     CUdeviceptr sample);
  absl::Status Svd(DType dtype, char vectors, int64_t m, int64_t n, CUdeviceptr a, CUdeviceptr s,
                   CUdeviceptr u, CUdeviceptr vt, const Call& call);

  // With `vectors` they replace `a`, which is lost otherwise.
  absl::StatusOr<SolverWork> EighWork(DType dtype, bool vectors, bool upper, int64_t n,
                                      CUdeviceptr sample);
  absl::Status Eigh(DType dtype, bool vectors, bool upper, int64_t n, CUdeviceptr a, CUdeviceptr w,
                    const Call& call);

 private:
  struct Functions;
  Solver(const Driver& driver, CUstream stream, std::unique_ptr<Functions> functions);
  absl::Status Start();
  // Memory that stays while calls that were given it may still run.
  void* HostWork(uint64_t bytes);

  const Driver& driver_;
  const CUstream stream_;
  const std::unique_ptr<Functions> functions_;
  void* handle_ = nullptr;
  void* parameters_ = nullptr;
  std::vector<std::byte> host_work_;
};

}  // namespace stride::cuda
