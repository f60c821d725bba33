#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "server/store/dtype.h"
#include "server/wire/plan.pb.h"

namespace stride::codegen {

// A LinalgLaunch whose operands have the number, dtypes and axes of its function. INTERNAL
// otherwise; the daemon sends no such launch.
struct LinalgShape {
  struct Matrix {
    int64_t rows = 0;
    int64_t columns = 0;
    DType dtype = DType::kFloat64;
    // Extents of its strides: batch axes, rows, columns.
    std::vector<int64_t> extents;
  };
  DType dtype = DType::kFloat64;  // dtype of the computation
  std::vector<Matrix> inputs, outputs;
  std::vector<int64_t> batch_extents;
  // Matrices in the batch; 0 when no output has an element, so that nothing is to be done.
  int64_t num_matrices = 0;
};
absl::StatusOr<LinalgShape> ReadLinalg(const wire::LinalgLaunch& launch);

}  // namespace stride::codegen
