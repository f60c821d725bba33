#pragma once

#include <cuda.h>

#include <string_view>

#include "absl/status/status.h"

namespace stride::cuda {

// The one place where the driver's codes become ours. OK for CUDA_SUCCESS. Text: what went wrong
// while `doing` what, with the driver's number.
absl::Status ToStatus(CUresult result, std::string_view doing);

// The context, and with it the process, is lost: no later call will succeed.
bool IsSticky(CUresult result);

// In words for the user whose kernel it was: "illegal memory access".
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
