#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "server/wire/plan.pb.h"

namespace stride::cuda {

// OK when [offset, offset + size) lies within an arena of `arena_size` bytes.
absl::Status CheckRange(uint64_t offset, uint64_t size, uint64_t arena_size);

// OK when every element that `operand` reaches over `extents` lies within an arena of `arena_size`
// bytes and is aligned to its size (a misaligned access would end the process). `extents` are those
// of the operand's strides, in order; a 0 among them reaches nothing. INVALID_ARGUMENT otherwise:
// these come from the daemon and should never be wrong, but a wrong one must not touch another
// array.
absl::Status CheckOperand(const wire::Operand& operand, absl::Span<const int64_t> extents,
                          uint64_t arena_size);

}  // namespace stride::cuda
