#pragma once

#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "server/worker/cuda/compile/cubin_info.h"

namespace stride::cuda {

// The kernels that PTX text declares visible, with their parameters laid out as PTX says: each at
// the next multiple of its alignment. INVALID_ARGUMENT when a declaration cannot be read; whether
// the code itself is right, the driver says when it loads it.
absl::StatusOr<std::vector<KernelInfo>> ReadPtx(std::string_view ptx);

// The variables that PTX text declares outside functions, in its .global and .const spaces.
absl::StatusOr<std::vector<VariableInfo>> ReadPtxVariables(std::string_view ptx);

}  // namespace stride::cuda
