#pragma once

#include <cstdint>

#include "absl/time/time.h"
#include "server/base/steady_time.h"

namespace stride {

// Gives memory that the allocator keeps for messages back to the kernel once the process has
// little to do: while it is busy, having it at hand is worth more. One thread.
class IdleMemory {
 public:
  // How often to look.
  static constexpr absl::Duration kInterval = absl::Seconds(3);

  // True when it gave memory back.
  bool Look();

 private:
  SteadyTime last_;
  absl::Duration last_processor_time_;
};

}  // namespace stride
