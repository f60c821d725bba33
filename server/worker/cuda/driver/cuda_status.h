#pragma once

#include <cuda.h>

#include <string_view>

#include "absl/status/status.h"

namespace stride::cuda {

// The only conversion of the driver's codes to ours. OK for CUDA_SUCCESS. The text has the error,
// the activity `doing` and the driver's number.
absl::Status ToStatus(CUresult result, std::string_view doing);

// The context, and with it the process, is lost: no later call will succeed.
bool IsSticky(CUresult result);

// The cause in words for the kernel's user: "illegal memory access".
std::string_view CauseText(CUresult result);

// The status of the task in which the device stopped: FAILED_PRECONDITION when a kernel can have
// caused it, else INTERNAL.
absl::Status FaultStatus(CUresult result, std::string_view label);

}  // namespace stride::cuda

// Returns the status of a failed driver call from the enclosing function.
#define STRIDE_CUDA_RETURN(call, doing)                                   \
  do {                                                                    \
    if (CUresult stride_result = (call); stride_result != CUDA_SUCCESS) { \
      return ::stride::cuda::ToStatus(stride_result, doing);              \
    }                                                                     \
  } while (false)
