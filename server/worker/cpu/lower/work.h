#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "server/worker/cpu/lower/arena_table.h"

namespace stride::cpu {

// A task made ready: its places are found and checked, its code is at hand. Run once, on the
// compute thread.
struct Work {
  // FAILED_PRECONDITION when the kernel ended itself (assert, trap); RESOURCE_EXHAUSTED for scratch
  // memory.
  std::function<absl::Status()> run;
  // Inputs, then outputs; for a kernel its arguments, empty where not an array. Kept for what a
  // fault is told by, and to keep the arenas mapped.
  std::vector<Place> operands;
  // The name of a client's kernel, which lives as long as `run`.
  std::string_view kernel;
};

}  // namespace stride::cpu
