#pragma once

#include "absl/types/span.h"

namespace stride::engine {

// The cost of a task on one device, as estimated now.
struct Candidate {
  int device = 0;
  bool suitable = true;       // serves, is of a kind that can run it, and is the pinned one if any
  double queued_seconds = 0;  // expected run time of everything placed there and not finished
  double transfer_seconds = 0;  // to copy the inputs that the device lacks
  double run_seconds = 0;
};

// The device that is expected to finish the task first; -1: none is suitable. The first in the list
// wins among equal ones, so callers rotate the list or put a preferred device first.
int ChooseDevice(absl::Span<const Candidate> candidates);

}  // namespace stride::engine
