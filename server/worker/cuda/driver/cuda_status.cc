#include "server/worker/cuda/driver/cuda_status.h"

#include <string>

#include "absl/strings/str_cat.h"

namespace stride::cuda {
namespace {

struct Row {
  CUresult result;
  absl::StatusCode code;
  bool sticky;
  std::string_view cause;
};

using absl::StatusCode;

// Sticky rows follow the driver API's text "the process must be terminated and relaunched" and
// measurement on driver 580.
constexpr Row kRows[] = {
    {CUDA_ERROR_OUT_OF_MEMORY, StatusCode::kResourceExhausted, false,
     "the device is out of memory"},
    {CUDA_ERROR_DEINITIALIZED, StatusCode::kInternal, true, "the driver is shutting down"},
    {CUDA_ERROR_NO_DEVICE, StatusCode::kUnavailable, false, "no NVIDIA device"},
    {CUDA_ERROR_DEVICE_UNAVAILABLE, StatusCode::kUnavailable, false,
     "the device is held by another process alone"},
    {CUDA_ERROR_INVALID_IMAGE, StatusCode::kInvalidArgument, false,
     "the binary is no code for this device"},
    {CUDA_ERROR_NO_BINARY_FOR_GPU, StatusCode::kInvalidArgument, false,
     "the binary holds no code for this device's architecture"},
    {CUDA_ERROR_INVALID_PTX, StatusCode::kInvalidArgument, false, "the PTX is invalid"},
    {CUDA_ERROR_UNSUPPORTED_PTX_VERSION, StatusCode::kInvalidArgument, false,
     "the PTX is of a newer version than this driver knows"},
    {CUDA_ERROR_INVALID_SOURCE, StatusCode::kInvalidArgument, false, "the code is invalid"},
    {CUDA_ERROR_JIT_COMPILER_NOT_FOUND, StatusCode::kUnimplemented, false,
     "the driver has no PTX compiler"},
    {CUDA_ERROR_NOT_FOUND, StatusCode::kInvalidArgument, false, "no such kernel in the module"},
    {CUDA_ERROR_NOT_SUPPORTED, StatusCode::kUnimplemented, false, "not supported by this device"},
    {CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, StatusCode::kInvalidArgument, false,
     "a block needs more registers or shared memory than a multiprocessor has"},
    {CUDA_ERROR_SYSTEM_DRIVER_MISMATCH, StatusCode::kUnavailable, false,
     "the driver's library and kernel module differ in version"},
    {CUDA_ERROR_SYSTEM_NOT_READY, StatusCode::kUnavailable, false, "the driver is not ready"},
    {CUDA_ERROR_ILLEGAL_ADDRESS, StatusCode::kFailedPrecondition, true, "illegal memory access"},
    {CUDA_ERROR_LAUNCH_TIMEOUT, StatusCode::kFailedPrecondition, true,
     "the kernel ran past the display driver's time limit"},
    {CUDA_ERROR_CONTEXT_IS_DESTROYED, StatusCode::kInternal, true, "the device context was lost"},
    {CUDA_ERROR_ASSERT, StatusCode::kFailedPrecondition, true, "device assert failed"},
    {CUDA_ERROR_HARDWARE_STACK_ERROR, StatusCode::kFailedPrecondition, true,
     "stack overflow or corrupted call stack"},
    {CUDA_ERROR_ILLEGAL_INSTRUCTION, StatusCode::kFailedPrecondition, true,
     "illegal instruction or trap"},
    {CUDA_ERROR_MISALIGNED_ADDRESS, StatusCode::kFailedPrecondition, true,
     "misaligned memory access"},
    {CUDA_ERROR_INVALID_ADDRESS_SPACE, StatusCode::kFailedPrecondition, true,
     "access to the wrong address space"},
    {CUDA_ERROR_INVALID_PC, StatusCode::kFailedPrecondition, true, "jump to an invalid address"},
    {CUDA_ERROR_LAUNCH_FAILED, StatusCode::kFailedPrecondition, true,
     "the kernel was stopped by a trap or another device exception"},
    {static_cast<CUresult>(721), StatusCode::kFailedPrecondition, true,
     "tensor memory was not freed at the kernel's end"},
    {CUDA_ERROR_ECC_UNCORRECTABLE, StatusCode::kInternal, true, "uncorrectable memory (ECC) error"},
    {CUDA_ERROR_NVLINK_UNCORRECTABLE, StatusCode::kInternal, true, "uncorrectable NVLink error"},
    {static_cast<CUresult>(226), StatusCode::kInternal, true, "contained hardware memory error"},
    {CUDA_ERROR_UNKNOWN, StatusCode::kInternal, true, "unknown device error"},
};

const Row* Find(CUresult result) {
  for (const Row& row : kRows) {
    if (row.result == result) return &row;
  }
  return nullptr;
}

std::string_view Cause(const Row* row) {
  return row != nullptr ? row->cause : std::string_view("unexpected driver error");
}

std::string Text(std::string_view text) { return std::string(text); }

}  // namespace

absl::Status ToStatus(CUresult result, std::string_view doing) {
  if (result == CUDA_SUCCESS) return absl::OkStatus();
  const Row* row = Find(result);
  return absl::Status(row != nullptr ? row->code : absl::StatusCode::kInternal,
                      absl::StrCat(Text(Cause(row)), " (CUDA error ", static_cast<int>(result),
                                   ") while ", Text(doing)));
}

bool IsSticky(CUresult result) {
  const Row* row = Find(result);
  return row != nullptr && row->sticky;
}

std::string_view CauseText(CUresult result) { return Cause(Find(result)); }

absl::Status FaultStatus(CUresult result, std::string_view label) {
  const Row* row = Find(result);
  const std::string where = label.empty() ? std::string() : absl::StrCat(" in `", Text(label), "`");
  return absl::Status(
      row != nullptr && row->sticky ? row->code : absl::StatusCode::kInternal,
      absl::StrCat(Text(Cause(row)), where, " (CUDA error ", static_cast<int>(result), ")"));
}

}  // namespace stride::cuda
