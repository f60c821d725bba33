#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "server/worker/cpu/lower/arena_table.h"

namespace stride::cpu {

// A lowered task: operands found and checked, code loaded. Run once, on the compute thread.
struct Work {
  // FAILED_PRECONDITION when the kernel ended itself (assert, trap); RESOURCE_EXHAUSTED for scratch
  // memory.
  std::function<absl::Status()> run;
  // Inputs, then outputs; for a kernel its arguments, empty where not an array. Used in fault
  // reports, and to keep the arenas mapped.
  std::vector<Place> operands;
  // The name of a client's kernel, valid as long as `run`.
  std::string_view kernel;
};

}  // namespace stride::cpu
