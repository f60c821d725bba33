#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "server/wire/plan.pb.h"

namespace stride::cuda {

// OK when [offset, offset + size) lies within an arena of `arena_size` bytes.
absl::Status CheckRange(uint64_t offset, uint64_t size, uint64_t arena_size);

// OK when all elements of `operand` over `extents` lie within an arena of `arena_size` bytes and
// are aligned to their size (a misaligned access would end the process). `extents` belong to the
// operand's strides, in order; with a 0 among them there are no elements. INVALID_ARGUMENT
// otherwise: the daemon's operands should always be valid, but an invalid one must not access
// another array.
absl::Status CheckOperand(const wire::Operand& operand, absl::Span<const int64_t> extents,
                          uint64_t arena_size);

}  // namespace stride::cuda
