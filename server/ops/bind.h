#pragma once

#include <cstdint>

#include "absl/types/span.h"
#include "server/wire/plan.pb.h"

namespace stride::ops {

// Where a slot's buffer lies: on the device, or in a graph's slot.
struct Location {
  uint64_t arena = 0;
  uint64_t offset = 0;
};
// Replaces slots by locations throughout the task: arena = slots[slot].arena, offset +=
// slots[slot].offset. In daemon and workers alike.
void Bind(wire::Task* task, absl::Span<const Location> slots);

}  // namespace stride::ops
