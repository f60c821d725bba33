#include "server/broker/staging.h"

#include "server/base/environment.h"

namespace stride::broker {

StagingPool::StagingPool(std::byte* base, uint64_t size, uint64_t slot_bytes)
    : base_(base), slot_bytes_(slot_bytes) {
  // Slots are leased from the back: the lowest offsets, whose pages were touched first, are used
  // most.
  for (uint64_t slot = size / slot_bytes; slot-- > 0;) free_.push_back(slot * slot_bytes);
}

StagingPool::Slot StagingPool::Acquire(SteadyTime deadline) {
  absl::MutexLock lock(&mutex_);
  auto ready = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return closed_ || !free_.empty(); };
  Await(mutex_, absl::Condition(&ready), deadline);
  return Take();
}

StagingPool::Slot StagingPool::TryAcquire() {
  absl::MutexLock lock(&mutex_);
  return Take();
}

StagingPool::Slot StagingPool::Take() {
  if (closed_ || free_.empty()) return {};
  uint64_t offset = free_.back();
  free_.pop_back();
  return {base_ + offset, offset, slot_bytes_};
}

void StagingPool::Release(const Slot& slot) {
  absl::MutexLock lock(&mutex_);
  free_.push_back(slot.offset);
}

void StagingPool::Close() {
  absl::MutexLock lock(&mutex_);
  closed_ = true;
}

int StagingPool::num_free() const {
  absl::MutexLock lock(&mutex_);
  return static_cast<int>(free_.size());
}

}  // namespace stride::broker
