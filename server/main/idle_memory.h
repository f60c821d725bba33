#pragma once

#include <cstdint>
#include <functional>
#include <utility>

#include "absl/time/time.h"
#include "server/base/steady_time.h"

namespace stride {

// Returns freed memory, which the allocator keeps, to the kernel. A busy process mostly reuses
// freed memory at once, so there memory must stay free from one check to the next; a process with
// little to do returns it at the first check. Runs on a thread of its own: both the count and the
// walk through the heap hold the allocator's locks, and the time between two checks grows with
// their cost.
class IdleMemory {
 public:
  // Interval of checks, if they are cheap.
  static constexpr absl::Duration kInterval = absl::Seconds(3);

  IdleMemory();
  // `processor_time`: time used by this process so far, for tests.
  explicit IdleMemory(std::function<absl::Duration()> processor_time)
      : processor_time_(std::move(processor_time)) {}

  // When to look again.
  absl::Duration Look();
  // Number of times that memory was returned.
  int num_trims() const { return num_trims_; }

 private:
  bool IsIdle(SteadyTime now);
  void Trim(bool pool);

  const std::function<absl::Duration()> processor_time_;
  SteadyTime last_;
  absl::Duration last_processor_time_;
  // Resident bytes beyond those in use that no trim returns: code, stacks, holes that are too
  // small.
  int64_t stuck_bytes_ = 0;
  bool much_was_free_ = false;
  int num_trims_ = 0;
};

}  // namespace stride
