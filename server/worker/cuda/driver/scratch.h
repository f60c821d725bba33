#pragma once

#include <cuda.h>

#include <cstdint>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/worker/cuda/driver/driver.h"

namespace stride::cuda {

// Device memory for one task's partial results. The next task may reuse it, since tasks of a stream
// run one after another. Small memory is kept; large memory is released after the task, so that
// arrays can use it. Not thread-safe.
class Scratch {
 public:
  Scratch(const Driver& driver, CUstream stream) : driver_(driver), stream_(stream) {}
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  ~Scratch();

  // Call once, before other methods: creates `num_arrivals` counters, and one for end marks.
  absl::Status Start(int num_arrivals);
  // 32-bit counters, all zero between launches of the stream: each launch resets those that it
  // changes.
  CUdeviceptr arrivals() const { return end_arrivals() + kCounterBytes; }
  // Call after launches that share counters, if some of them failed.
  void ClearArrivals();
  // The one of codegen::EndMark.
  CUdeviceptr end_arrivals() const { return arrivals_; }

  // At least `bytes` bytes, aligned to 256, valid until Trim. The content is left over from the
  // tenant's earlier tasks. RESOURCE_EXHAUSTED when there is no memory.
  absl::StatusOr<CUdeviceptr> Reserve(uint64_t bytes);
  // Called after each task.
  void Trim();

  // Larger memory is released after the task.
  static constexpr uint64_t kKeptBytes = 64 << 20;
  // While frozen, Reserve must succeed with existing memory: steps are being captured.
  void Freeze(bool frozen) { frozen_ = frozen; }
  // The largest reservation since the last call.
  uint64_t TakePeak() { return std::exchange(peak_, 0); }

 private:
  static constexpr CUdeviceptr kCounterBytes = sizeof(uint32_t);

  const Driver& driver_;
  const CUstream stream_;
  CUdeviceptr arrivals_ = 0;
  uint64_t arrival_bytes_ = 0;
  CUdeviceptr address_ = 0;
  uint64_t size_ = 0;
  uint64_t peak_ = 0;
  bool frozen_ = false;
};

}  // namespace stride::cuda
