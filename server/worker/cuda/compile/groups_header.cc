#include "server/worker/cuda/compile/groups_header.h"

namespace stride::cuda {
namespace {

// The barrier's layout is GridBarrier's (server/worker/cuda/driver/grid_barrier.h). It is a
// template so that only code that waits for the grid has it, and others pay nothing at a launch.
// The kind of a fault is RoutineFault::kNoGrid.
constexpr char kGroups[] = R"(#pragma once
template <int> __device__ __align__(16) unsigned int stride_grid_barrier[6];

namespace cooperative_groups {
#define STRIDE_GROUP static __device__ __forceinline__

class thread_block {
 public:
  STRIDE_GROUP void sync() { __syncthreads(); }
  STRIDE_GROUP unsigned int thread_rank() {
    return (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
  }
  STRIDE_GROUP unsigned int num_threads() { return blockDim.x * blockDim.y * blockDim.z; }
  STRIDE_GROUP unsigned int size() { return num_threads(); }
  STRIDE_GROUP dim3 group_index() { return dim3(blockIdx.x, blockIdx.y, blockIdx.z); }
  STRIDE_GROUP dim3 thread_index() { return dim3(threadIdx.x, threadIdx.y, threadIdx.z); }
  STRIDE_GROUP dim3 group_dim() { return dim3(blockDim.x, blockDim.y, blockDim.z); }
  STRIDE_GROUP dim3 dim_threads() { return group_dim(); }
};
STRIDE_GROUP thread_block this_thread_block() { return thread_block(); }

class grid_group {
 public:
  template <int I = 0> STRIDE_GROUP bool is_valid() {
    return *(volatile unsigned int*)&stride_grid_barrier<I>[0] != 0;
  }
  template <int I = 0> STRIDE_GROUP void sync() {
    volatile unsigned int* barrier = stride_grid_barrier<I>;
    if (barrier[0] == 0) {
      unsigned long long* fault = *(unsigned long long**)&stride_grid_barrier<I>[4];
      if (fault != 0) *(volatile unsigned long long*)fault = 6;
      __threadfence_system();
      asm volatile("exit;");
    }
    __syncthreads();
    if (thread_block::thread_rank() == 0) {
      __threadfence();
      unsigned int before = barrier[2];
      if (atomicAdd(&stride_grid_barrier<I>[1], 1u) == (unsigned int)num_blocks() - 1) {
        barrier[1] = 0;
        __threadfence();
        barrier[2] = before + 1;
      } else {
        while (barrier[2] == before) {
        }
      }
      __threadfence();
    }
    __syncthreads();
  }
  STRIDE_GROUP dim3 group_dim() { return dim3(gridDim.x, gridDim.y, gridDim.z); }
  STRIDE_GROUP dim3 dim_blocks() { return group_dim(); }
  STRIDE_GROUP dim3 block_index() { return dim3(blockIdx.x, blockIdx.y, blockIdx.z); }
  STRIDE_GROUP unsigned long long num_blocks() {
    return (unsigned long long)gridDim.x * gridDim.y * gridDim.z;
  }
  STRIDE_GROUP unsigned long long block_rank() {
    return ((unsigned long long)blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
  }
  STRIDE_GROUP unsigned long long num_threads() {
    return num_blocks() * thread_block::num_threads();
  }
  STRIDE_GROUP unsigned long long size() { return num_threads(); }
  STRIDE_GROUP unsigned long long thread_rank() {
    return block_rank() * thread_block::num_threads() + thread_block::thread_rank();
  }
};
STRIDE_GROUP grid_group this_grid() { return grid_group(); }

template <unsigned int N, class Parent = thread_block>
class thread_block_tile {
  static_assert(N >= 1 && N <= 32 && (N & (N - 1)) == 0,
                "tiles here have 1, 2, 4, 8, 16 or 32 threads");
  STRIDE_GROUP unsigned int first_lane() { return thread_block::thread_rank() % 32 & ~(N - 1); }
  STRIDE_GROUP unsigned int lanes() {
    return (0xffffffffu >> (32 - N)) << first_lane();
  }

 public:
  STRIDE_GROUP void sync() { __syncwarp(lanes()); }
  STRIDE_GROUP unsigned int thread_rank() { return thread_block::thread_rank() & (N - 1); }
  STRIDE_GROUP constexpr unsigned int size() { return N; }
  STRIDE_GROUP constexpr unsigned int num_threads() { return N; }
  STRIDE_GROUP unsigned int meta_group_rank() { return thread_block::thread_rank() / N; }
  STRIDE_GROUP unsigned int meta_group_size() { return (thread_block::num_threads() + N - 1) / N; }
  template <class T> STRIDE_GROUP T shfl(T v, int source) {
    return __shfl_sync(lanes(), v, source, N);
  }
  template <class T> STRIDE_GROUP T shfl_up(T v, unsigned int delta) {
    return __shfl_up_sync(lanes(), v, delta, N);
  }
  template <class T> STRIDE_GROUP T shfl_down(T v, unsigned int delta) {
    return __shfl_down_sync(lanes(), v, delta, N);
  }
  template <class T> STRIDE_GROUP T shfl_xor(T v, unsigned int other) {
    return __shfl_xor_sync(lanes(), v, other, N);
  }
  STRIDE_GROUP unsigned int ballot(int predicate) {
    return __ballot_sync(lanes(), predicate) >> first_lane();
  }
  STRIDE_GROUP int any(int predicate) { return __any_sync(lanes(), predicate); }
  STRIDE_GROUP int all(int predicate) { return __all_sync(lanes(), predicate); }
};
template <unsigned int N, class Parent>
STRIDE_GROUP thread_block_tile<N, Parent> tiled_partition(const Parent&) {
  return thread_block_tile<N, Parent>();
}

class coalesced_group {
  unsigned int mask_;
  static __device__ __forceinline__ unsigned int lane() {
    return thread_block::thread_rank() % 32;
  }

 public:
  explicit __device__ __forceinline__ coalesced_group(unsigned int mask) : mask_(mask) {}
  __device__ __forceinline__ void sync() const { __syncwarp(mask_); }
  __device__ __forceinline__ unsigned int size() const { return __popc(mask_); }
  __device__ __forceinline__ unsigned int num_threads() const { return __popc(mask_); }
  __device__ __forceinline__ unsigned int thread_rank() const {
    return __popc(mask_ & ((1u << lane()) - 1));
  }
  __device__ __forceinline__ int any(int predicate) const { return __any_sync(mask_, predicate); }
  __device__ __forceinline__ int all(int predicate) const { return __all_sync(mask_, predicate); }
  template <class T> __device__ __forceinline__ T shfl(T v, unsigned int rank) const {
    unsigned int left = mask_;
    for (unsigned int i = 0; i < rank; ++i) left &= left - 1;
    return __shfl_sync(mask_, v, __ffs((int)left) - 1);
  }
};
STRIDE_GROUP coalesced_group coalesced_threads() { return coalesced_group(__activemask()); }

template <class Group> STRIDE_GROUP void sync(const Group& group) { group.sync(); }

template <class T> struct plus {
  __device__ __forceinline__ T operator()(T a, T b) const { return a + b; }
};
template <class T> struct less {
  __device__ __forceinline__ T operator()(T a, T b) const { return b < a ? b : a; }
};
template <class T> struct greater {
  __device__ __forceinline__ T operator()(T a, T b) const { return a < b ? b : a; }
};
template <class T> struct bit_and {
  __device__ __forceinline__ T operator()(T a, T b) const { return a & b; }
};
template <class T> struct bit_or {
  __device__ __forceinline__ T operator()(T a, T b) const { return a | b; }
};
template <class T> struct bit_xor {
  __device__ __forceinline__ T operator()(T a, T b) const { return a ^ b; }
};
template <unsigned int N, class P, class T, class F>
STRIDE_GROUP T reduce(const thread_block_tile<N, P>& tile, T value, F combine) {
  for (int lanes = N / 2; lanes > 0; lanes /= 2)
    value = combine(value, tile.shfl_xor(value, lanes));
  return value;
}
#undef STRIDE_GROUP
}  // namespace cooperative_groups
)";

}  // namespace

const char* GroupsHeader() { return kGroups; }

}  // namespace stride::cuda
