// The memory a thread that runs blocks owns: the block's shared memory and its threads' private
// values.
#pragma once

#include <cstddef>
#include <cstdint>

namespace stride::cpucuda {

// Private values are arrays over the block's threads, value after value; each array starts on a
// cache line because the thread count is rounded up to this many. The compiler computes addresses
// by the same rule.
inline constexpr uint64_t kScratchThreadRounding = 64;

inline uint64_t ScratchBytes(uint64_t private_bytes_per_thread, uint64_t num_threads) {
  uint64_t rounded =
      (num_threads + kScratchThreadRounding - 1) / kScratchThreadRounding * kScratchThreadRounding;
  return private_bytes_per_thread * rounded;
}

// Grows, never shrinks. Fresh pages are zero; content is otherwise whatever the last block left.
class BlockScratch {
 public:
  BlockScratch() = default;
  ~BlockScratch();
  BlockScratch(const BlockScratch&) = delete;
  BlockScratch& operator=(const BlockScratch&) = delete;

  // Null when there is no memory.
  unsigned char* Reserve(size_t num_bytes);

 private:
  unsigned char* bytes_ = nullptr;
  size_t size_ = 0;
};

}  // namespace stride::cpucuda
