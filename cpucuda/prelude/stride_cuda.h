// The declarations that a CUDA C++ kernel has without an include.
#pragma once

#include "block_context.h"
#include "stride_half.h"

#define __device__ __attribute__((device))
#define __host__ __attribute__((host))
// A kernel is a device function; an entry point of ours calls it.
#define __global__ __attribute__((device)) __attribute__((annotate("stride.kernel")))
#define __shared__ __attribute__((shared)) __attribute__((annotate("stride.shared")))
#define __constant__ __attribute__((constant))
#define __managed__ __attribute__((device))
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))
#define __launch_bounds__(...) __attribute__((launch_bounds(__VA_ARGS__)))
#define __grid_constant__
#define __restrict __restrict__
#define __builtin_align__(n) __align__(n)
#define __CUDACC__ 1
#define __CUDACC_RTC__ 1
#define __CUDA_ARCH__ 800
#define CUDART_VERSION 12000
#define __STRIDE_CPUCUDA__ 1

// Only the compiler pass understands these.
extern "C" {
__device__ unsigned __stride_tid_x(void) __attribute__((const));
__device__ unsigned __stride_tid_y(void) __attribute__((const));
__device__ unsigned __stride_tid_z(void) __attribute__((const));
__device__ unsigned __stride_tid_linear(void) __attribute__((const));
__device__ unsigned __stride_field(unsigned offset) __attribute__((const));
__device__ void* __stride_pointer(unsigned offset) __attribute__((const));
__device__ stride::cpucuda::BlockContext* __stride_context(void) __attribute__((const));
__device__ void __stride_cut(void) __attribute__((convergent, noduplicate));
__device__ void __stride_wait_grid(void) __attribute__((convergent, noduplicate));
__device__ unsigned __stride_wait_warp(unsigned mask) __attribute__((convergent, noduplicate));
__device__ void* __stride_slot(unsigned bytes) __attribute__((convergent, noduplicate));
__device__ void* __stride_slot_clear(unsigned bytes) __attribute__((convergent, noduplicate));
}

#include "stride_atomics.h"
#include "stride_fail.h"
#include "stride_heap.h"
#include "stride_index.h"
#include "stride_intrinsics.h"
#include "stride_language.h"
#include "stride_vectors.h"
#include "stride_warp.h"

STRIDE_DEVICE int __dp4a(char4 a, char4 b, int c) {
  return c + a.x * b.x + a.y * b.y + a.z * b.z + a.w * b.w;
}
STRIDE_DEVICE unsigned __dp4a(uchar4 a, uchar4 b, unsigned c) {
  return c + a.x * b.x + a.y * b.y + a.z * b.z + a.w * b.w;
}

// An entry point: reads the packed parameters and calls the kernel.
namespace __stride {
template <int... I>
struct Sequence {};
template <int N, int... I>
struct MakeSequence : MakeSequence<N - 1, N - 1, I...> {};
template <int... I>
struct MakeSequence<0, I...> {
  typedef Sequence<I...> type;
};

template <class... A>
constexpr unsigned parameter_offset(int index) {
  constexpr unsigned sizes[] = {sizeof(A)..., 1}, alignments[] = {alignof(A)..., 1};
  unsigned offset = 0;
  for (int i = 0;; ++i) {
    offset = (offset + alignments[i] - 1) / alignments[i] * alignments[i];
    if (i == index) return offset;
    offset += sizes[i];
  }
}
// For a name that is no kernel; the compiler then reports it.
template <class T, T kernel>
struct entry {
  static STRIDE_METHOD void run() {}
};
template <class... A, void (*kernel)(A...)>
struct entry<void (*)(A...), kernel> {
  template <int... I>
  static STRIDE_METHOD void call(Sequence<I...>) {
    const char* parameters = (const char*)__stride_pointer(
        __builtin_offsetof(stride::cpucuda::BlockContext, parameters));
    (void)parameters;
    kernel(*(const A*)(parameters + parameter_offset<A...>(I))...);
  }
  static STRIDE_METHOD void run() { call(typename MakeSequence<sizeof...(A)>::type()); }
};
}  // namespace __stride
