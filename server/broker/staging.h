#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/base/steady_time.h"

namespace stride::broker {

// Equal slots of one worker's staging memory. Thread-safe. A slot's content belongs to its holder
// until the slot is returned.
class StagingPool {
 public:
  StagingPool(std::byte* base, uint64_t size, uint64_t slot_bytes);

  struct Slot {
    std::byte* data = nullptr;
    uint64_t offset = 0;  // within the staging memory
    uint64_t size = 0;
    explicit operator bool() const { return data != nullptr; }
  };

  // Waits until a slot is free, the pool is closed or `deadline` has passed; in the last two cases
  // the slot is empty.
  Slot Acquire(SteadyTime deadline);
  Slot TryAcquire();
  void Release(const Slot& slot);
  // The worker is gone: all waiters wake.
  void Close();

  uint64_t slot_bytes() const { return slot_bytes_; }
  int num_free() const;

 private:
  Slot Take() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  std::byte* const base_;
  const uint64_t slot_bytes_;
  mutable absl::Mutex mutex_;
  std::vector<uint64_t> free_ ABSL_GUARDED_BY(mutex_);
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace stride::broker
