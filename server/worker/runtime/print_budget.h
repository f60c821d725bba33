#pragma once

#include <cstddef>

#include "absl/time/time.h"
#include "server/base/printed_text.h"
#include "server/base/steady_time.h"

namespace stride::worker {

// Limits the rate of printed text of a worker's kernels, so that a flood costs the daemon no more
// than the text of a few tasks per second. Not thread-safe.
class PrintBudget {
 public:
  static constexpr size_t kBytesPerSecond = 8 << 20;
  static constexpr size_t kMostBytes = 8 << 20;  // most bytes saved up while nothing is printed

  // Cuts the text to the part that may be sent now, and charges that part.
  void Take(PrintedText* printed, SteadyTime now);

 private:
  double bytes_ = kMostBytes;
  SteadyTime last_ = SteadyTime::InfinitePast();
};

}  // namespace stride::worker
