#pragma once

#include <algorithm>
#include <cstdint>

#include "absl/status/status.h"

namespace stride::codegen {

// A fault in the data of a request, found by a task. Plain words, since device code writes them
// (routines/common.h). All zero: no fault.
struct RoutineFault {
  enum Kind : uint64_t {
    kNone = 0,
    kIndexOutOfRange = 1,
    kWrongCount = 2,
    // Faults of a matrix: `value` is a MatrixFaultWord, `limit` the number of matrices.
    kSingular = 3,
    kNotPositiveDefinite = 4,
    kNotConverged = 5,
    // A client's kernel synchronizes its grid, but the launch is not cooperative.
    kNoGrid = 6,
  };
  uint64_t kind = kNone;
  int64_t value = 0;
  int64_t limit = 0;
  // Words of the routine, zero before its first pass (routines/sums.h).
  uint64_t words[5] = {};
};
static_assert(sizeof(RoutineFault) == 64);

// Encodes a matrix of the batch and the library's `info`, from 1. The first matrix has the largest
// word, so that threads may combine words by maximum in any order. Never 0.
inline int64_t MatrixFaultWord(int64_t matrix, int info) {
  const int64_t first = 0x7fffffff - std::min<int64_t>(matrix, 0x7fffffff - 1);
  return first << 32 | static_cast<uint32_t>(info);
}

// The task's status: OUT_OF_RANGE, for a matrix with the reason LINEAR_ALGEBRA.
absl::Status ToStatus(const RoutineFault& fault);

}  // namespace stride::codegen
