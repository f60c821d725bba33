#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "server/wire/plan.pb.h"
#include "server/worker/codegen/fft_shape.h"
#include "server/worker/cuda/lower/fourier.h"
#include "server/worker/cuda/lower/lowering.h"

namespace stride::cuda {

// Fourier transforms by cuFFT. The input is copied first if it has gaps, or if its lines are cut or
// padded with zeros. One call transforms the last one to three axes, and further calls the others,
// in place; scaling comes last. Opens the library at first use. Not thread-safe.
class Fft {
 public:
  absl::Status Lower(const Lowering& lowering, const wire::FftLaunch& launch);

  // The text of our kernels; for tests.
  static std::string Ptx();

 private:
  struct Job;
  // Copies a part of one array to a part of another: byte strides of each axis.
  struct Box;

  absl::Status Prepare(const Lowering& lowering);
  absl::Status ReserveScratch(Job& job);
  absl::Status Copy(Job& job, const Box& box);
  absl::Status CopyInput(Job& job, CUdeviceptr to, const std::vector<int64_t>& strides,
                         const std::vector<int64_t>& extents);
  absl::Status TransformComplex(Job& job, CUdeviceptr from, CUdeviceptr to,
                                const std::vector<int64_t>& extents, int axis);
  // Transforms the complex axes that are not part of the last axis's call. The first pass moves the
  // data from `from` to `to` and sets `from` to `to`.
  absl::Status TransformOthers(Job& job, CUdeviceptr* from, CUdeviceptr to,
                               const std::vector<int64_t>& extents);
  absl::Status RunComplex(Job& job);
  absl::Status RunToComplex(Job& job);
  absl::Status RunToReal(Job& job);
  absl::Status Scale(Job& job);

  std::unique_ptr<Fourier> fourier_;
  KernelModule module_;
  bool prepared_ = false;
};

}  // namespace stride::cuda
