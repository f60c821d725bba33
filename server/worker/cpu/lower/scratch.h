#pragma once

#include <cstddef>
#include <cstdlib>
#include <memory>

namespace stride::cpu {

struct FreeDeleter {
  void operator()(void* memory) const { std::free(memory); }
};
using ScratchMemory = std::unique_ptr<std::byte, FreeDeleter>;

// Memory for one task, aligned to cache lines, of any content. Null when there is none: an answer,
// not an exception.
inline ScratchMemory AllocateScratch(size_t size) {
  constexpr size_t kAlignment = 64;
  size_t rounded = (size + kAlignment - 1) / kAlignment * kAlignment;
  return ScratchMemory(static_cast<std::byte*>(std::aligned_alloc(kAlignment, rounded)));
}

}  // namespace stride::cpu
