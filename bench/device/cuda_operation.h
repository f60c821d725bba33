#pragma once

#include <memory>
#include <vector>

#include "bench/device/cuda_harness.h"
#include "bench/device/device_operation.h"

namespace stride::bench {

// One operation as the daemon plans it, on the worker's CUDA device. In an arena of its own.
class CudaOperation {
 public:
  // `spare_bytes` come after the output, for a baseline's. RESOURCE_EXHAUSTED: they do not fit the
  // device's memory. `harness` outlives the operation.
  static absl::StatusOr<std::unique_ptr<CudaOperation>> Create(CudaHarness& harness,
                                                               const DeviceOperation& operation,
                                                               uint64_t spare_bytes = 0);
  ~CudaOperation() { harness_.DropArena(arena_); }

  // As this process's own streams see them.
  CUdeviceptr Input(int i) const { return memory_.address() + operation_.InputOffset(i); }
  CUdeviceptr Output() const { return memory_.address() + operation_.OutputOffset(); }
  CUdeviceptr Spare() const { return memory_.address() + operation_.size(); }

  // So often in a row, until the last has been reported.
  void Run(int count);

 private:
  CudaOperation(CudaHarness& harness, const DeviceOperation& operation, uint64_t arena,
                cuda::ArenaMapping memory);

  CudaHarness& harness_;
  const DeviceOperation operation_;
  const uint64_t arena_;
  const cuda::ArenaMapping memory_;
  wire::Task task_;
  Packet packet_;  // the last Run's
};

}  // namespace stride::bench
