#include "cpucuda/runtime/device_heap.h"

#include <cstdlib>

namespace stride::cpucuda {
namespace {

// The table takes more memory than many small blocks do, so it counts too.
constexpr size_t kBytesPerBlock = 64;

}  // namespace

DeviceHeap& DeviceHeap::Get() {
  static DeviceHeap* const heap = new DeviceHeap;
  return *heap;
}

void* DeviceHeap::Allocate(size_t bytes) {
  if (bytes == 0 || bytes > kMaxBytes) return nullptr;
  absl::MutexLock lock(&mutex_);
  const size_t charged = bytes + kBytesPerBlock;
  if (charged > kMaxBytes - used_) return nullptr;
  void* memory = std::malloc(bytes);
  if (memory == nullptr) return nullptr;
  blocks_[memory] = charged;
  used_ += charged;
  return memory;
}

bool DeviceHeap::Release(void* memory) {
  if (memory == nullptr) return true;
  absl::MutexLock lock(&mutex_);
  auto found = blocks_.find(memory);
  if (found == blocks_.end()) return false;
  used_ -= found->second;
  blocks_.erase(found);
  std::free(memory);
  return true;
}

size_t DeviceHeap::used() const {
  absl::MutexLock lock(&mutex_);
  return used_;
}

}  // namespace stride::cpucuda
