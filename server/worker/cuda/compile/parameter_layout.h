#pragma once

#include <optional>
#include <string>
#include <vector>

#include "server/wire/worker.pb.h"
#include "server/worker/cuda/compile/cubin_info.h"
#include "server/worker/cuda/compile/demangled_signature.h"

namespace stride::cuda {

// A kernel for the daemon: offsets and sizes as the object has them, types as the compiler spelled
// them. Without types, or when the two differ, parameters have offset and size alone.
wire::KernelDescription DescribeKernel(const std::string& entry, const KernelInfo& info,
                                       const std::optional<std::vector<ParameterType>>& types);

}  // namespace stride::cuda
