#include "tests/support/count_allocations.h"

#include <cstddef>
#include <cstdlib>
#include <new>

namespace {

void* Take(std::size_t size, std::size_t alignment) {
  stride::testing::Allocations::count += stride::testing::Allocations::counting;
  size = (size + alignment - 1) / alignment * alignment;
  void* block = std::aligned_alloc(alignment, size > 0 ? size : alignment);
  if (block == nullptr) std::abort();
  return block;
}

}  // namespace

void* operator new(std::size_t size) { return Take(size, alignof(std::max_align_t)); }
void* operator new(std::size_t size, std::align_val_t alignment) {
  return Take(size, static_cast<std::size_t>(alignment));
}
void operator delete(void* block) noexcept { std::free(block); }
void operator delete(void* block, std::size_t) noexcept { std::free(block); }
void operator delete(void* block, std::align_val_t) noexcept { std::free(block); }
void operator delete(void* block, std::size_t, std::align_val_t) noexcept { std::free(block); }
