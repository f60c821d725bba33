#pragma once

#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "server/worker/cuda/compile/cubin_info.h"

namespace stride::cuda {

// The visible kernels of PTX text, with parameters laid out by PTX's rules: each at the next
// multiple of its alignment. INVALID_ARGUMENT when a declaration is malformed; the driver checks
// the code itself when it loads it.
absl::StatusOr<std::vector<KernelInfo>> ReadPtx(std::string_view ptx);

// The variables that PTX text declares outside functions, in its .global and .const spaces.
absl::StatusOr<std::vector<VariableInfo>> ReadPtxVariables(std::string_view ptx);

}  // namespace stride::cuda
