#pragma once

#include <cuda.h>

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "server/worker/cuda/driver/driver.h"
#include "server/worker/cuda/driver/handles.h"

namespace stride::cuda {

// Pinned host memory for small values on their way to the device, used in turn. A copy from it
// neither waits for the stream (as copies from other host memory may) nor reads freed memory. Not
// thread-safe.
class HostRing {
 public:
  HostRing(const Driver& driver, CUstream stream) : driver_(driver), stream_(stream) {}
  // Call after the stream has ended.
  ~HostRing();
  HostRing(const HostRing&) = delete;
  HostRing& operator=(const HostRing&) = delete;

  // Enqueues a copy; `bytes` may be freed at once. Waits for the stream when the ring wraps around,
  // after a megabyte.
  absl::Status Copy(CUdeviceptr to, const void* bytes, uint64_t size);

 private:
  absl::Status Start();

  const Driver& driver_;
  const CUstream stream_;
  std::byte* memory_ = nullptr;
  PinnedRegion region_;
  uint64_t used_ = 0;
};

}  // namespace stride::cuda
