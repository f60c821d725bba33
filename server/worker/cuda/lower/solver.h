#pragma once

#include <cuda.h>

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "server/store/dtype.h"
#include "server/worker/cuda/driver/driver.h"
#include "server/worker/cuda/lower/solver_work.h"

namespace stride::cuda {

// cuSOLVER's dense routines, opened at run time. Matrices are column-major without gaps, of
// float32, float64, complex64 or complex128. Calls enqueue on the stream; some also wait for the
// device. Each writes an int to `info` on the device: 0, or above 0 a fault of the data. The
// ...Work functions ask the library for the work memory of a call with the same arguments, which
// the call requires. `sample` is any array of the dtype on the device. Not thread-safe.
class Solver {
 public:
  // Opens the library and creates its handle, which takes long. UNIMPLEMENTED when it is not
  // installed.
  static absl::StatusOr<std::unique_ptr<Solver>> Open(const Driver& driver, CUstream stream);
  // The same with the functions that `find` returns; null: the library has no such function.
  static absl::StatusOr<std::unique_ptr<Solver>> Create(const Driver& driver, CUstream stream,
                                                        absl::FunctionRef<void*(const char*)> find);
  ~Solver();

  // A call's work memory and its info.
  struct Call {
    SolverWork need;  // requested for the same routine and arguments
    CUdeviceptr work = 0;
    uint64_t work_bytes = 0;  // at `work`
    CUdeviceptr info = 0;
  };

  absl::StatusOr<SolverWork> CholeskyWork(DType dtype, bool upper, int64_t n, CUdeviceptr sample);
  absl::Status Cholesky(DType dtype, bool upper, int64_t n, CUdeviceptr a, const Call& call);

  // Pivots are int64, from 1.
  absl::StatusOr<SolverWork> LuWork(DType dtype, int64_t m, int64_t n, CUdeviceptr sample);
  absl::Status Lu(DType dtype, int64_t m, int64_t n, CUdeviceptr a, CUdeviceptr pivots,
                  const Call& call);
  // Takes no work memory.
  absl::Status SolveByLu(DType dtype, int64_t n, int64_t num_right, CUdeviceptr lu,
                         CUdeviceptr pivots, CUdeviceptr b, CUdeviceptr info);

  absl::StatusOr<SolverWork> QrWork(DType dtype, int64_t m, int64_t n, CUdeviceptr sample);
  absl::Status Qr(DType dtype, int64_t m, int64_t n, CUdeviceptr a, CUdeviceptr tau,
                  const Call& call);
  // Q's first columns, in place of Qr's reflectors. Counts in 32 bits.
  absl::StatusOr<SolverWork> QWork(DType dtype, int64_t m, int64_t columns, int64_t num_reflectors,
                                   CUdeviceptr sample);
  absl::Status Q(DType dtype, int64_t m, int64_t columns, int64_t num_reflectors, CUdeviceptr a,
                 CUdeviceptr tau, const Call& call);

  // Requires m >= n. `vectors`: 'A', 'S' or 'N'. Overwrites `a`.
  absl::StatusOr<SolverWork> SvdWork(DType dtype, char vectors, int64_t m, int64_t n,
                                     CUdeviceptr sample);
  absl::Status Svd(DType dtype, char vectors, int64_t m, int64_t n, CUdeviceptr a, CUdeviceptr s,
                   CUdeviceptr u, CUdeviceptr vt, const Call& call);

  // Overwrites `a`: with the eigenvectors if `vectors`.
  absl::StatusOr<SolverWork> EighWork(DType dtype, bool vectors, bool upper, int64_t n,
                                      CUdeviceptr sample);
  absl::Status Eigh(DType dtype, bool vectors, bool upper, int64_t n, CUdeviceptr a, CUdeviceptr w,
                    const Call& call);

  // For any square matrix, which is overwritten. `right`: right eigenvectors, unless 0. For a real
  // matrix all results are real: `w` has all real parts, then all imaginary parts. For a conjugate
  // pair of eigenvalues `right` has the real parts in one column, the imaginary parts in the next.
  // UNIMPLEMENTED where the library has no cusolverDnXgeev (before CUDA 12.8).
  absl::StatusOr<SolverWork> EigWork(DType dtype, bool vectors, int64_t n, CUdeviceptr sample);
  absl::Status Eig(DType dtype, bool vectors, int64_t n, CUdeviceptr a, CUdeviceptr w,
                   CUdeviceptr right, const Call& call);

 private:
  struct Functions;
  Solver(const Driver& driver, CUstream stream, std::unique_ptr<Functions> functions);
  absl::Status Start();
  // `run(WorkPlaces)` calls the library, after a check that the call has its workspace.
  template <typename Run>
  absl::Status RunIn(const Call& call, const SolverRoutine& routine, std::string_view doing,
                     Run run);
  // Host memory that stays valid while earlier calls may still use it.
  void* HostWork(uint64_t bytes);

  const Driver& driver_;
  const CUstream stream_;
  const std::unique_ptr<Functions> functions_;
  void* handle_ = nullptr;
  void* parameters_ = nullptr;
  std::vector<std::byte> host_work_;
};

}  // namespace stride::cuda
