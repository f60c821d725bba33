#pragma once

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/wire/plan.pb.h"
#include "server/worker/codegen/linalg_shape.h"
#include "server/worker/codegen/routine_fault.h"
#include "server/worker/cuda/lower/gather.h"
#include "server/worker/cuda/lower/linalg_batch.h"
#include "server/worker/cuda/lower/lowering.h"
#include "server/worker/cuda/lower/solver.h"

namespace stride::cuda {

// Decompositions and linear systems by cuSOLVER, one matrix after another, or many small ones
// together (LinalgBatch). Arrays are row-major and the library is column-major, so each matrix is
// copied to its order and back. Opens the library at first use. Not thread-safe.
class Linalg {
 public:
  // `fault`: host memory to which the device writes a fault of the data; valid once the task has
  // ended.
  absl::Status Lower(const Lowering& lowering, const wire::LinalgLaunch& launch,
                     codegen::RoutineFault* fault);

  // The text of all kernels; for tests.
  static std::string Ptx();

 private:
  struct Job;
  absl::Status Prepare(const Lowering& lowering);
  absl::Status RunMatrices(Job& job);
  absl::Status ReserveScratch(Job& job);
  absl::Status RunMatrix(Job& job, int64_t index);
  absl::Status Cholesky(Job& job);
  absl::Status Qr(Job& job);
  absl::Status Svd(Job& job);
  absl::Status Eigh(Job& job);
  absl::Status Eig(Job& job);
  // Whether all elements of the copy are finite; otherwise reports a fault. Waits for the stream.
  absl::StatusOr<bool> IsFinite(Job& job);
  absl::Status Solve(Job& job);
  absl::Status Lu(Job& job);
  // Copies a matrix to the library's order, or back.
  absl::Status CopyIn(Job& job, int input, CUdeviceptr to);
  absl::Status CopyOut(Job& job, CUdeviceptr from, int64_t leading, int output,
                       int64_t lowest_diagonal = std::numeric_limits<int64_t>::min(),
                       int64_t highest_diagonal = std::numeric_limits<int64_t>::max());
  absl::Status NoteFaults(Job& job);

  std::unique_ptr<Solver> solver_;
  LinalgBatch batch_;
  Gather gather_;
  KernelModule module_;
  bool prepared_ = false;
};

}  // namespace stride::cuda
