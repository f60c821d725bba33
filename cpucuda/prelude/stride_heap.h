// The device heap: malloc, free, new and delete of kernels. The process keeps it: a later launch
// may use and free the memory that one allocates.
#pragma once

STRIDE_DEVICE void* malloc(size_t bytes) {
  stride::cpucuda::BlockContext* block = __stride_context();
  return block->runtime->allocate(block, bytes);
}
STRIDE_DEVICE void* calloc(size_t count, size_t bytes) {
  size_t all;
  if (__builtin_mul_overflow(count, bytes, &all)) return 0;
  void* memory = malloc(all);
  if (memory != 0) __builtin_memset(memory, 0, all);
  return memory;
}
STRIDE_DEVICE void free(void* memory) {
  stride::cpucuda::BlockContext* block = __stride_context();
  if (block->runtime->release(block, memory)) return;
  __stride::fail("free: the device heap did not give this pointer, or has it back", 0, 0);
}

namespace __stride {
// A class may be constructed there at once, so new must not return a null pointer.
STRIDE_DEVICE void* allocate_for_new(size_t bytes) {
  void* memory = malloc(bytes);
  if (memory == 0) fail("new: the device heap is full", 0, 0);
  return memory;
}
}  // namespace __stride

#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Winline-new-delete"
STRIDE_METHOD void* operator new(size_t bytes) { return __stride::allocate_for_new(bytes); }
STRIDE_METHOD void* operator new[](size_t bytes) { return __stride::allocate_for_new(bytes); }
STRIDE_METHOD void operator delete(void* memory) noexcept { free(memory); }
STRIDE_METHOD void operator delete[](void* memory) noexcept { free(memory); }
STRIDE_METHOD void operator delete(void* memory, size_t) noexcept { free(memory); }
STRIDE_METHOD void operator delete[](void* memory, size_t) noexcept { free(memory); }
STRIDE_METHOD void* operator new(size_t, void* place) noexcept { return place; }
STRIDE_METHOD void* operator new[](size_t, void* place) noexcept { return place; }
STRIDE_METHOD void operator delete(void*, void*) noexcept {}
STRIDE_METHOD void operator delete[](void*, void*) noexcept {}
#pragma clang diagnostic pop
