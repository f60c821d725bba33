// The heap that kernels' malloc, free, new and delete use.
#pragma once

#include <cstddef>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/synchronization/mutex.h"

namespace stride::cpucuda {

// One for each process, so one for each tenant and device. It outlives launches, as CUDA's does:
// one kernel may allocate and a later one free. Any thread may call; no call blocks for long.
class DeviceHeap {
 public:
  // CUDA's own default (cudaLimitMallocHeapSize).
  static constexpr size_t kMaxBytes = 8 << 20;
  static DeviceHeap& Get();

  // Aligned to 16 bytes; null when the heap is full or `bytes` is 0.
  void* Allocate(size_t bytes);
  // True for null and for what Allocate gave and nothing has released; false for other pointers,
  // which stay as they are.
  bool Release(void* memory);
  size_t used() const;

 private:
  mutable absl::Mutex mutex_;
  size_t used_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::flat_hash_map<void*, size_t> blocks_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace stride::cpucuda
