#pragma once

#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/wire/plan.pb.h"
#include "server/worker/cuda/lower/blas.h"
#include "server/worker/cuda/lower/gather.h"
#include "server/worker/cuda/lower/lowering.h"

namespace stride::cuda {

// Matrix products: by cuBLAS for floating and complex dtypes, by emitted code for the others. Keeps
// the library's handle. Not thread-safe.
class Matmul {
 public:
  // Opens cuBLAS if installed; otherwise only emitted code works, and other products return
  // UNAVAILABLE.
  Matmul() : blas_(Blas::Open()) {}

  // `module` is null when the launch names none.
  absl::Status Lower(const Lowering& lowering, KernelModule* module,
                     const wire::MatmulLaunch& launch);

 private:
  absl::Status ByLibrary(const Lowering& lowering, const wire::MatmulLaunch& launch,
                         CUdeviceptr left, CUdeviceptr right, CUdeviceptr output);

  absl::StatusOr<std::unique_ptr<Blas>> blas_;
  Gather gather_;
};

}  // namespace stride::cuda
