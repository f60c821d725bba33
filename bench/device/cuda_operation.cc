#include "bench/device/cuda_operation.h"

#include <utility>

#include "bench/device/check.h"

namespace stride::bench {

absl::StatusOr<std::unique_ptr<CudaOperation>> CudaOperation::Create(
    CudaHarness& harness, const DeviceOperation& operation, uint64_t spare_bytes) {
  const uint64_t arena = harness.NewId();
  auto memory = harness.CreateArena(arena, operation.size() + spare_bytes);
  if (!memory.ok()) return memory.status();
  return std::unique_ptr<CudaOperation>(
      new CudaOperation(harness, operation, arena, *std::move(memory)));
}

CudaOperation::CudaOperation(CudaHarness& harness, const DeviceOperation& operation, uint64_t arena,
                             cuda::ArenaMapping memory)
    : harness_(harness), operation_(operation), arena_(arena), memory_(std::move(memory)) {
  const uint64_t module = operation_.code() ? harness_.Load(*operation_.code()) : 0;
  task_ = operation_.TaskIn(arena_, module);
}

void CudaOperation::Run(int count) {
  while (packet_.size() > count) packet_.RemoveLast();
  while (packet_.size() < count) *packet_.Add() = task_;
  Check(harness_.Run(&packet_));
}

}  // namespace stride::bench
