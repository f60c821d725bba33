#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/types/span.h"
#include "server/wire/plan.pb.h"

namespace stride::ops {

// Location of a slot's buffer: on the device, or in a graph's slot.
struct Location {
  uint64_t arena = 0;
  uint64_t offset = 0;
};
// Replaces slots by locations throughout the task: arena = slots[slot].arena, offset +=
// slots[slot].offset. The daemon and the workers use it.
void Bind(wire::Task* task, absl::Span<const Location> slots);

// Sets the module of the task's launch, of any kind.
void SetModule(wire::Task* task, uint64_t module);

// Binds one task repeatedly to different locations without copying it.
class Rebinder {
 public:
  // Sets the plan that later calls bind.
  void Use(const wire::Task& plan);
  // Binds the plan as ops::Bind does; valid until the next call. Other changes by the caller stay
  // in the task.
  wire::Task* Bind(absl::Span<const Location> slots);

 private:
  wire::Task task_;
  std::vector<Location> slots_;  // the plan's places (slot and offset) in the order of MapPlaces
};

}  // namespace stride::ops
