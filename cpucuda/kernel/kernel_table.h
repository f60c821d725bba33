#pragma once

#include <string>
#include <vector>

#include "cpucuda/kernel/compiled_kernel.h"

namespace stride::cpucuda {

// The requested kernels and variables of one source. The front end makes the table; later passes
// complete it.
struct KernelTable {
  std::vector<CompiledKernel> kernels;      // one for each requested entry
  std::vector<CompiledGlobal> globals;      // one for each requested variable, without symbols
  std::vector<std::string> dynamic_shared;  // names of `extern __shared__` variables
  std::string error;                        // the user's mistake; empty: none
};

}  // namespace stride::cpucuda
