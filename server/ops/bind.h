#pragma once

#include <cstdint>
#include <memory>
#include <vector>

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

// Has the task's launch run code of this module, of whatever kind the launch is.
void SetModule(wire::Task* task, uint64_t module);

// Binds one task again and again, to other locations each time, without a copy for each.
class Rebinder {
 public:
  // Its plan from now on.
  void Use(const wire::Task& plan);
  // As Bind of the plan; good until the next call. What else the caller changes in it stays.
  wire::Task* Bind(absl::Span<const Location> slots);

 private:
  wire::Task task_;
  std::vector<Location> slots_;  // of the plan, by place: slot and offset
};

}  // namespace stride::ops
