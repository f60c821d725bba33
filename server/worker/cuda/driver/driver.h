#pragma once

#include <cuda.h>

#include <memory>

#include "absl/status/statusor.h"

namespace stride::cuda {

// Functions of every supported driver (CUDA 12.0 and later).
#define STRIDE_CUDA_DRIVER_FUNCTIONS(X)          \
  X(cuInit)                                      \
  X(cuDriverGetVersion)                          \
  X(cuGetErrorName)                              \
  X(cuDeviceGetCount)                            \
  X(cuDeviceGet)                                 \
  X(cuDeviceGetName)                             \
  X(cuDeviceGetUuid)                             \
  X(cuDeviceGetAttribute)                        \
  X(cuDeviceTotalMem)                            \
  X(cuDeviceGetPCIBusId)                         \
  X(cuDeviceCanAccessPeer)                       \
  X(cuDevicePrimaryCtxRetain)                    \
  X(cuDevicePrimaryCtxRelease)                   \
  X(cuCtxSetCurrent)                             \
  X(cuStreamCreateWithPriority)                  \
  X(cuStreamDestroy)                             \
  X(cuStreamSynchronize)                         \
  X(cuStreamQuery)                               \
  X(cuStreamWriteValue32)                        \
  X(cuStreamWaitEvent)                           \
  X(cuEventCreate)                               \
  X(cuEventRecord)                               \
  X(cuEventSynchronize)                          \
  X(cuEventDestroy)                              \
  X(cuMemHostRegister)                           \
  X(cuMemHostUnregister)                         \
  X(cuMemHostGetDevicePointer)                   \
  X(cuMemGetAllocationGranularity)               \
  X(cuMemCreate)                                 \
  X(cuMemRelease)                                \
  X(cuMemExportToShareableHandle)                \
  X(cuMemImportFromShareableHandle)              \
  X(cuMemAddressReserve)                         \
  X(cuMemAddressFree)                            \
  X(cuMemMap)                                    \
  X(cuMemUnmap)                                  \
  X(cuMemSetAccess)                              \
  X(cuMemAllocAsync)                             \
  X(cuMemFreeAsync)                              \
  X(cuMemcpyHtoDAsync)                           \
  X(cuMemcpyDtoHAsync)                           \
  X(cuMemcpyDtoDAsync)                           \
  X(cuMemsetD8Async)                             \
  X(cuMemsetD2D32Async)                          \
  X(cuMemcpy3DAsync)                             \
  X(cuArray3DCreate)                             \
  X(cuArrayDestroy)                              \
  X(cuTexObjectCreate)                           \
  X(cuTexObjectDestroy)                          \
  X(cuModuleLoadDataEx)                          \
  X(cuModuleUnload)                              \
  X(cuModuleGetFunction)                         \
  X(cuModuleGetGlobal)                           \
  X(cuFuncGetAttribute)                          \
  X(cuFuncSetAttribute)                          \
  X(cuOccupancyMaxActiveBlocksPerMultiprocessor) \
  X(cuLaunchKernel)                              \
  X(cuLaunchCooperativeKernel)                   \
  X(cuStreamBeginCapture)                        \
  X(cuStreamEndCapture)                          \
  X(cuGraphCreate)                               \
  X(cuGraphAddKernelNode)                        \
  X(cuGraphInstantiateWithFlags)                 \
  X(cuGraphExecUpdate)                           \
  X(cuGraphExecKernelNodeSetParams)              \
  X(cuGraphLaunch)                               \
  X(cuGraphDestroy)                              \
  X(cuGraphExecDestroy)

// Functions of newer drivers: null when the driver is older.
#define STRIDE_CUDA_OPTIONAL_FUNCTIONS(X) \
  X(cuFuncGetParamInfo) /* 12.4 */        \
  X(cuFuncLoad)         /* 12.4 */

// The CUDA driver, opened at run time so that the executable starts on a machine without one.
// Members have the names of the driver's functions. cuda.h maps some of them to versioned symbols;
// the same symbols are looked up. Immutable; any thread.
struct Driver {
  // Initializes the driver. UNAVAILABLE when there is no driver or no device; FAILED_PRECONDITION
  // when the driver is too old.
  static absl::StatusOr<std::shared_ptr<const Driver>> Load();

#define STRIDE_DECLARE(name) decltype(&::name) name = nullptr;
  STRIDE_CUDA_DRIVER_FUNCTIONS(STRIDE_DECLARE)
  STRIDE_CUDA_OPTIONAL_FUNCTIONS(STRIDE_DECLARE)
#undef STRIDE_DECLARE
};

}  // namespace stride::cuda
