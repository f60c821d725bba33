#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/wire/plan.pb.h"
#include "server/worker/codegen/linalg_shape.h"
#include "server/worker/cuda/lower/batch_solver.h"
#include "server/worker/cuda/lower/gather.h"
#include "server/worker/cuda/lower/lowering.h"

namespace stride::cuda {

// Runs many small matrices in one library call, some MiB of them at a time. A loop of calls costs
// 80 us or more per matrix. Not thread-safe.
class LinalgBatch {
 public:
  struct Task {
    const Lowering& lowering;
    const wire::LinalgLaunch& launch;
    const codegen::LinalgShape& shape;
    // Addresses of matrix 0.
    const std::vector<CUdeviceptr>& inputs;
    const std::vector<CUdeviceptr>& outputs;
  };
  // Places in scratch memory that the call has cleared, and the findings of each matrix.
  struct Notes {
    CUdeviceptr fault = 0;
    CUdeviceptr infos = 0;
  };

  // Whether this function has a batched routine for matrices of this size. Opens the libraries.
  absl::StatusOr<bool> Takes(const Task& task);
  // Enqueues the whole task. `fault_bytes`: the size of Notes::fault.
  absl::StatusOr<Notes> Run(const Task& task, Gather& gather, uint64_t fault_bytes);

  // The text of the kernels; for tests.
  static std::string Ptx();

 private:
  struct Group;
  struct Job;
  absl::Status Prepare(const Lowering& lowering);
  absl::Status Reserve(Job& job, uint64_t fault_bytes);
  // The work memory of the function for a group.
  absl::StatusOr<SolverWork> Work(Job& job, const Group& group);
  absl::StatusOr<Solver::Call> CallOf(Job& job, const Group& group);
  absl::Status RunGroup(Job& job, const Group& group);
  absl::Status CopyIn(Job& job, const Group& group, int input, CUdeviceptr to);
  // Rows, columns and count of `from` are those of the output.
  absl::Status CopyOut(Job& job, const Group& group, const GatherSource& from, int output);
  absl::Status SetIdentities(Job& job, const Group& group);
  // Computes L U of the input in `a`, with its pivots.
  absl::Status Factorize(Job& job, const Group& group);
  absl::Status Cholesky(Job& job, const Group& group);
  absl::Status Solve(Job& job, const Group& group);
  absl::Status Lu(Job& job, const Group& group);
  absl::Status Eigh(Job& job, const Group& group);
  absl::Status Svd(Job& job, const Group& group);
  // Writes the addresses of the group's matrices, of `bytes` bytes each from `base` on.
  absl::Status SetPointers(Job& job, const Group& group, CUdeviceptr pointers, CUdeviceptr base,
                           int64_t bytes);
  // Converts 32-bit pivots to 64-bit ones.
  absl::Status Widen(Job& job, CUdeviceptr from, CUdeviceptr to, int64_t count);

  std::unique_ptr<BatchSolver> solver_;
  KernelModule module_;
  bool prepared_ = false;
};

}  // namespace stride::cuda
