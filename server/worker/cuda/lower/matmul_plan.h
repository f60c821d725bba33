#pragma once

#include <cstdint>
#include <vector>

#include "server/wire/plan.pb.h"

// Maps a product of strided matrices to BLAS calls, which need matrices with one contiguous axis
// and one batch stride. Pure; no device.
namespace stride::cuda {

// One factor, rows x columns. All numbers are in elements.
struct MatmulFactor {
  int64_t rows = 0, columns = 0;
  int64_t row_stride = 0, column_stride = 0, batch_stride = 0;
  // Its strides fit no BLAS layout (reversed, repeated or non-contiguous), so it is first copied to
  // a contiguous matrix. After the copy row_stride = columns and column_stride = 1.
  bool copy = false;
  // Otherwise: columns are the contiguous runs (row_stride = 1), not rows.
  bool transposed = false;
  int64_t leading = 0;  // distance of two runs

  // Number of matrices to copy: one when all batches share it.
  int64_t NumCopies(int64_t batch_count) const { return batch_stride == 0 ? 1 : batch_count; }
};

// A batch axis that is looped over: steps in elements.
struct MatmulLoop {
  int64_t extent = 1;
  int64_t left_step = 0, right_step = 0, output_step = 0;
};

struct MatmulPlan {
  int64_t m = 0, n = 0, k = 0;
  int64_t batch_count = 1;  // by one call
  int64_t output_batch_stride = 0;
  MatmulFactor left, right;
  std::vector<MatmulLoop> loops;  // outermost first
};

// Extents are positive, k included; strides are multiples of the item's size.
MatmulPlan PlanMatmul(const wire::MatmulLaunch& launch, int64_t item_bytes);

}  // namespace stride::cuda
