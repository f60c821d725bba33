#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdlib>
#include <memory>

namespace stride::cpu {

struct FreeDeleter {
  void operator()(void* memory) const { std::free(memory); }
};
using ScratchMemory = std::unique_ptr<std::byte, FreeDeleter>;

// Memory for one task, aligned to cache lines, of any content. Returns null instead of throwing
// when there is none. The C library returns large memory to the system, so that each task touches
// its pages for the first time. With huge pages that takes a quarter of the time.
inline ScratchMemory AllocateScratch(size_t size) {
  constexpr size_t kLineBytes = 64, kHugePageBytes = 2 << 20;
  const bool huge = size >= 2 * kHugePageBytes;
  const size_t alignment = huge ? kHugePageBytes : kLineBytes;
  const size_t rounded = (size + alignment - 1) / alignment * alignment;
  ScratchMemory memory(static_cast<std::byte*>(std::aligned_alloc(alignment, rounded)));
  if (huge && memory != nullptr) madvise(memory.get(), rounded, MADV_HUGEPAGE);
  return memory;
}

}  // namespace stride::cpu
