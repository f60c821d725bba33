#pragma once

#include <cuda.h>

#include <cstdint>
#include <limits>
#include <string>

#include "absl/status/statusor.h"
#include "server/worker/cuda/lower/lowering.h"

namespace stride::cuda {

// Matrices with any strides; in elements.
struct GatherSource {
  CUdeviceptr address = 0;
  int64_t rows = 0, columns = 0, num_matrices = 1;
  int64_t row_stride = 0, column_stride = 0, matrix_stride = 0;
  // Elements on other diagonals (column - row) are read as zero.
  int64_t lowest_diagonal = std::numeric_limits<int64_t>::min();
  int64_t highest_diagonal = std::numeric_limits<int64_t>::max();
};

// Copies matrices to contiguous memory, for libraries that support no strides. The kernels are a
// few lines of our PTX, which the driver compiles at first use, since a serving worker has no
// compiler.
class Gather {
 public:
  // `item_bytes`: 2, 4, 8 or 16.
  absl::Status Run(const Lowering& lowering, const GatherSource& source, int64_t item_bytes,
                   CUdeviceptr destination);

  // The text of all kernels; for tests.
  static std::string Ptx();

 private:
  absl::Status Prepare(const Lowering& lowering);

  KernelModule module_;
  bool prepared_ = false;
};

}  // namespace stride::cuda
