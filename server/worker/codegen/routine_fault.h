#pragma once

#include <cstdint>

#include "absl/status/status.h"

namespace stride::codegen {

// What a routine finds wrong with the data of a request (routines/common.h); plain words, since
// device code writes them. All zero: nothing.
struct RoutineFault {
  enum Kind : uint64_t { kNone = 0, kIndexOutOfRange = 1, kWrongCount = 2 };
  uint64_t kind = kNone;
  int64_t value = 0;
  int64_t limit = 0;
  uint64_t unused = 0;
};
static_assert(sizeof(RoutineFault) == 32);

// As the task's status: OUT_OF_RANGE.
absl::Status ToStatus(const RoutineFault& fault);

}  // namespace stride::codegen
