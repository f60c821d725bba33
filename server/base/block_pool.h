#pragma once

#include <cstddef>
#include <memory>
#include <utility>

namespace stride {

// Allocator for small objects that one thread creates and another destroys, thousands a second.
// malloc locks the creating thread's heap for each such release. Here each thread has two magazines
// of free blocks per size and exchanges whole magazines with a shared depot (J. Bonwick, J. Adams:
// "Magazines and Vmem", USENIX 2001, section 3).
//
// Blocks are aligned to cache lines. Under a sanitizer each block comes from operator new, so that
// use after free is found. Thread-safe.
class BlockPool {
 public:
#if defined(__SANITIZE_ADDRESS__) || defined(STRIDE_THREAD_SANITIZER)
  static constexpr bool kPools = false;
#else
  static constexpr bool kPools = true;
#endif
  static constexpr size_t kUnitBytes = 64;
  static constexpr size_t kLargestBytes = 1536;  // larger blocks come from operator new
  // The depot frees blocks beyond this number of bytes at once.
  static constexpr size_t kMaxFreeBytes = size_t{64} << 20;

  // Never null; throws as operator new does.
  static void* Take(size_t bytes);
  // `bytes`: as passed to Take.
  static void Give(void* block, size_t bytes);

  // Free bytes in the depot, without the magazines of threads.
  static size_t free_bytes();
  // Returns the depot's free blocks to operator delete.
  static void Trim();
};

// Allocator for containers and std::allocate_shared that takes blocks from the pool.
template <typename T>
struct PoolAllocator {
  static_assert(alignof(T) <= BlockPool::kUnitBytes);
  using value_type = T;

  PoolAllocator() = default;
  template <typename U>
  // NOLINTNEXTLINE(google-explicit-constructor): allocators convert implicitly
  PoolAllocator(const PoolAllocator<U>&) {}

  T* allocate(size_t count) { return static_cast<T*>(BlockPool::Take(count * sizeof(T))); }
  void deallocate(T* block, size_t count) { BlockPool::Give(block, count * sizeof(T)); }

  friend bool operator==(const PoolAllocator&, const PoolAllocator&) { return true; }
};

// std::make_shared on the pool.
template <typename T, typename... Args>
std::shared_ptr<T> MakePooled(Args&&... args) {
  return std::allocate_shared<T>(PoolAllocator<T>(), std::forward<Args>(args)...);
}

}  // namespace stride
