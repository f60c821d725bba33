#pragma once

#include <cstddef>
#include <memory>
#include <utility>

namespace stride {

// Memory for objects that come and go by the thousand, made by one thread and let go of by another.
// The C library takes such a lock each time: of the heap that the object was made in. Here every
// thread keeps two magazines of free blocks of each size, and trades whole ones with a depot that
// all threads share (J. Bonwick, J. Adams: "Magazines and Vmem", USENIX 2001, section 3).
//
// Blocks begin at cache lines. Under a sanitizer every block is the C++ library's, so that what is
// used after its end is found. Thread-safe.
class BlockPool {
 public:
#if defined(__SANITIZE_ADDRESS__) || defined(STRIDE_THREAD_SANITIZER)
  static constexpr bool kPools = false;
#else
  static constexpr bool kPools = true;
#endif
  static constexpr size_t kUnitBytes = 64;
  static constexpr size_t kLargestBytes = 1536;  // larger ones are the C++ library's
  // Free blocks in the depot beyond this are given back at once.
  static constexpr size_t kMaxFreeBytes = size_t{64} << 20;

  // Never null; throws as operator new does.
  static void* Take(size_t bytes);
  // `bytes`: as they were asked for.
  static void Give(void* block, size_t bytes);

  // What lies free in the depot: those of a thread that are at hand are not counted.
  static size_t free_bytes();
  // Gives that back to the C++ library.
  static void Trim();
};

// For containers and std::allocate_shared: takes from the pool.
template <typename T>
struct PoolAllocator {
  static_assert(alignof(T) <= BlockPool::kUnitBytes);
  using value_type = T;

  PoolAllocator() = default;
  template <typename U>
  // NOLINTNEXTLINE(google-explicit-constructor): as allocators do
  PoolAllocator(const PoolAllocator<U>&) {}

  T* allocate(size_t count) { return static_cast<T*>(BlockPool::Take(count * sizeof(T))); }
  void deallocate(T* block, size_t count) { BlockPool::Give(block, count * sizeof(T)); }

  friend bool operator==(const PoolAllocator&, const PoolAllocator&) { return true; }
};

// As std::make_shared.
template <typename T, typename... Args>
std::shared_ptr<T> MakePooled(Args&&... args) {
  return std::allocate_shared<T>(PoolAllocator<T>(), std::forward<Args>(args)...);
}

}  // namespace stride
