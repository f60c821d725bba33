#pragma once

#include <optional>
#include <string>
#include <vector>

#include "server/wire/worker.pb.h"
#include "server/worker/cuda/compile/cubin_info.h"
#include "server/worker/cuda/compile/demangled_signature.h"

namespace stride::cuda {

// Describes a kernel for the daemon: offsets and sizes from the object, types from the compiler.
// Without types, or if the two differ, parameters have only offset and size.
wire::KernelDescription DescribeKernel(const std::string& entry, const KernelInfo& info,
                                       const std::optional<std::vector<ParameterType>>& types);

}  // namespace stride::cuda
