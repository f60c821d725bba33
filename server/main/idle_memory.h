#pragma once

#include <cstdint>

#include "absl/time/time.h"
#include "server/base/steady_time.h"

namespace stride {

// Gives freed memory that the allocator keeps back to the kernel. What a busy process frees it
// mostly takes again at once, so there memory has to stay free from one look to the next; a process
// with little to do gives it back at the first. One thread, apart from those that work: both the
// count and the walk through the heap hold the allocator's locks, and the time between two looks
// grows with what they cost.
class IdleMemory {
 public:
  // How often to look, when looking is cheap.
  static constexpr absl::Duration kInterval = absl::Seconds(3);

  // When to look again.
  absl::Duration Look();
  // How often memory was given back.
  int num_trims() const { return num_trims_; }

 private:
  bool IsIdle(SteadyTime now);
  void Trim(bool pool);

  SteadyTime last_;
  absl::Duration last_processor_time_;
  // Resident bytes beyond those in use that no trim gives back: code, stacks, holes too small.
  int64_t stuck_bytes_ = 0;
  bool much_was_free_ = false;
  int num_trims_ = 0;
};

}  // namespace stride
