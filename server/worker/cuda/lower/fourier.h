#pragma once

#include <cuda.h>

#include <cstdint>
#include <list>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "server/store/dtype.h"
#include "server/worker/cuda/driver/driver.h"

namespace stride::cuda {

// Transforms of many lines at once. Strides between elements and between lines, in elements of each
// side.
struct FourierLines {
  DType input = DType::kComplex64, output = DType::kComplex64;
  int64_t length = 0;
  int64_t count = 0;
  int64_t input_stride = 1, input_distance = 0;
  int64_t output_stride = 1, output_distance = 0;
  // If not empty: transforms over these axes and the lines' own axis, which is the last. Both sides
  // must be contiguous then, with strides of 1.
  std::vector<long long> outer;
  bool operator==(const FourierLines&) const = default;
};

// cuFFT, opened at run time. Caches the plans used last, since creating one takes longer than using
// it. Not thread-safe.
class Fourier {
 public:
  // UNIMPLEMENTED when the library is not installed.
  static absl::StatusOr<std::unique_ptr<Fourier>> Open(const Driver& driver, CUstream stream);
  ~Fourier();

  // Creates the plan; returns the bytes of work memory that Run needs for it.
  absl::StatusOr<uint64_t> WorkBytes(const FourierLines& lines);
  // Without scaling. `from` may equal `to` if both sides have the same layout. From complex to real
  // numbers `from` may be overwritten.
  absl::Status Run(const FourierLines& lines, bool inverse, CUdeviceptr from, CUdeviceptr to,
                   CUdeviceptr work);

 private:
  struct Functions;
  struct Plan {
    FourierLines lines;
    int handle = 0;
    uint64_t work_bytes = 0;
  };
  Fourier(const Driver& driver, CUstream stream, std::unique_ptr<Functions> functions);
  absl::StatusOr<Plan*> Find(const FourierLines& lines);
  absl::Status Make(Plan* plan);

  const Driver& driver_;
  const CUstream stream_;
  const std::unique_ptr<Functions> functions_;
  std::list<Plan> plans_;  // most recently used first
};

}  // namespace stride::cuda
