#pragma once

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "server/wire/plan.pb.h"
#include "server/worker/codegen/fft_shape.h"
#include "server/worker/cuda/lower/fourier.h"
#include "server/worker/cuda/lower/lowering.h"

namespace stride::cuda {

// Fourier transforms by cuFFT. The input is copied first, since a view may have any strides and
// lines are cut or continued with zeros; then axis after axis is transformed, complex ones in
// place, and last comes the scale. Opens the library when it is first needed. Not thread-safe.
class Fft {
 public:
  absl::Status Lower(const Lowering& lowering, const wire::FftLaunch& launch);

  // The text of our kernels; for tests.
  static std::string Ptx();

 private:
  struct Job;
  // A part of one array into a part of another: byte strides of each axis.
  struct Box;

  absl::Status Prepare(const Lowering& lowering);
  absl::Status ReserveScratch(Job& job);
  absl::Status Copy(Job& job, const Box& box);
  absl::Status CopyInput(Job& job, CUdeviceptr to, const std::vector<int64_t>& strides,
                         const std::vector<int64_t>& extents);
  absl::Status TransformComplex(Job& job, CUdeviceptr data, const std::vector<int64_t>& extents,
                                int axis);
  absl::Status RunComplex(Job& job);
  absl::Status RunToComplex(Job& job);
  absl::Status RunToReal(Job& job);
  absl::Status Scale(Job& job);

  std::unique_ptr<Fourier> fourier_;
  KernelModule module_;
  bool prepared_ = false;
};

}  // namespace stride::cuda
