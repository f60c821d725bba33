#pragma once

#include <algorithm>
#include <cstdint>

#include "absl/status/status.h"

namespace stride::codegen {

// What a task finds wrong with the data of a request; plain words, since device code writes them
// (routines/common.h). All zero: nothing.
struct RoutineFault {
  enum Kind : uint64_t {
    kNone = 0,
    kIndexOutOfRange = 1,
    kWrongCount = 2,
    // Of a matrix: `value` is a MatrixFaultWord, `limit` the number of matrices.
    kSingular = 3,
    kNotPositiveDefinite = 4,
    kNotConverged = 5,
    // A client's kernel waits for a grid whose launch is not cooperative.
    kNoGrid = 6,
  };
  uint64_t kind = kNone;
  int64_t value = 0;
  int64_t limit = 0;
  // The routine's words, zero before its first pass (routines/sums.h).
  uint64_t words[5] = {};
};
static_assert(sizeof(RoutineFault) == 64);

// Which matrix of a batch is at fault, and where: the library's own number, from 1. The greatest
// word is that of the first matrix, so that threads can note theirs in any order. Never 0.
inline int64_t MatrixFaultWord(int64_t matrix, int info) {
  const int64_t first = 0x7fffffff - std::min<int64_t>(matrix, 0x7fffffff - 1);
  return first << 32 | static_cast<uint32_t>(info);
}

// As the task's status: OUT_OF_RANGE, of a matrix with the reason LINEAR_ALGEBRA.
absl::Status ToStatus(const RoutineFault& fault);

}  // namespace stride::codegen
