// Cooperative groups: the grid, the block, tiles of a warp, and the threads of a warp that are
// here.
#pragma once

namespace cooperative_groups {

class thread_block {
 public:
  static STRIDE_METHOD void sync() { __syncthreads(); }
  static STRIDE_METHOD unsigned thread_rank() { return __stride_tid_linear(); }
  static STRIDE_METHOD unsigned size() { return __stride::num_threads(); }
  static STRIDE_METHOD unsigned num_threads() { return __stride::num_threads(); }
  static STRIDE_METHOD dim3 group_index() { return blockIdx; }
  static STRIDE_METHOD dim3 thread_index() { return threadIdx; }
  static STRIDE_METHOD dim3 group_dim() { return blockDim; }
  static STRIDE_METHOD dim3 dim_threads() { return blockDim; }
};
STRIDE_DEVICE thread_block this_thread_block() { return thread_block(); }

// All blocks of a cooperative launch. In any other it is not valid, and sync() ends the launch.
class grid_group {
  static STRIDE_METHOD unsigned long long product(dim3 v) {
    return (unsigned long long)v.x * v.y * v.z;
  }

 public:
  static STRIDE_METHOD bool is_valid() { return STRIDE_FIELD(cooperative, 0) != 0; }
  static STRIDE_METHOD void sync() { __stride_wait_grid(); }
  static STRIDE_METHOD dim3 group_dim() { return gridDim; }
  static STRIDE_METHOD dim3 dim_blocks() { return gridDim; }
  static STRIDE_METHOD dim3 block_index() { return blockIdx; }
  static STRIDE_METHOD unsigned long long num_blocks() { return product(gridDim); }
  static STRIDE_METHOD unsigned long long block_rank() {
    return ((unsigned long long)blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
  }
  static STRIDE_METHOD unsigned long long num_threads() {
    return num_blocks() * __stride::num_threads();
  }
  static STRIDE_METHOD unsigned long long size() { return num_threads(); }
  static STRIDE_METHOD unsigned long long thread_rank() {
    return block_rank() * __stride::num_threads() + __stride_tid_linear();
  }
};
STRIDE_DEVICE grid_group this_grid() { return grid_group(); }

template <unsigned N, class Parent = thread_block>
class thread_block_tile {
  static_assert(N >= 1 && N <= 32 && (N & (N - 1)) == 0,
                "the CPU device has tiles of 1, 2, 4, 8, 16 or 32 threads");
  static STRIDE_METHOD unsigned first_lane() { return __stride::lane() & ~(N - 1); }
  static STRIDE_METHOD unsigned lanes() { return (N == 32 ? ~0u : (1u << N) - 1) << first_lane(); }

 public:
  static STRIDE_METHOD void sync() { __stride_wait_warp(lanes()); }
  static STRIDE_METHOD unsigned thread_rank() { return __stride_tid_linear() & (N - 1); }
  static STRIDE_METHOD constexpr unsigned size() { return N; }
  static STRIDE_METHOD constexpr unsigned num_threads() { return N; }
  static STRIDE_METHOD unsigned meta_group_rank() { return __stride_tid_linear() / N; }
  static STRIDE_METHOD unsigned meta_group_size() { return (__stride::num_threads() + N - 1) / N; }
  template <class T>
  static STRIDE_METHOD T shfl(T v, int source) {
    return __stride::shuffle(lanes(), v, source, N);
  }
  template <class T>
  static STRIDE_METHOD T shfl_up(T v, unsigned delta) {
    return __stride::shuffle_up(lanes(), v, delta, N);
  }
  template <class T>
  static STRIDE_METHOD T shfl_down(T v, unsigned delta) {
    return __stride::shuffle_down(lanes(), v, delta, N);
  }
  template <class T>
  static STRIDE_METHOD T shfl_xor(T v, int other) {
    return __stride::shuffle_xor(lanes(), v, other, N);
  }
  static STRIDE_METHOD unsigned ballot(int predicate) {
    return __stride::vote(lanes(), predicate != 0).yes >> first_lane();
  }
  static STRIDE_METHOD int any(int predicate) { return ballot(predicate) != 0; }
  static STRIDE_METHOD int all(int predicate) {
    return __stride::vote(lanes(), predicate != 0).all();
  }
};
template <unsigned N, class Parent>
STRIDE_DEVICE thread_block_tile<N, Parent> tiled_partition(const Parent&) {
  return thread_block_tile<N, Parent>();
}

// The lanes of the warp that reached coalesced_threads() together.
class coalesced_group {
  unsigned mask_;

 public:
  explicit STRIDE_METHOD coalesced_group(unsigned mask) : mask_(mask) {}
  STRIDE_METHOD void sync() const { __stride_wait_warp(mask_); }
  STRIDE_METHOD unsigned size() const { return __popc(mask_); }
  STRIDE_METHOD unsigned num_threads() const { return __popc(mask_); }
  STRIDE_METHOD unsigned thread_rank() const {
    return __popc(mask_ & ((1u << __stride::lane()) - 1));
  }
  STRIDE_METHOD int any(int predicate) const {
    return __stride::vote(mask_, predicate != 0).yes != 0;
  }
  STRIDE_METHOD int all(int predicate) const { return __stride::vote(mask_, predicate != 0).all(); }
  template <class T>
  STRIDE_METHOD T shfl(T v, unsigned rank) const {
    unsigned left = mask_;
    for (unsigned i = 0; i < rank; ++i) left &= left - 1;
    return __stride::shuffle(mask_, v, __ffs((int)left) - 1, 32);
  }
};
STRIDE_DEVICE coalesced_group coalesced_threads() { return coalesced_group(__activemask()); }

template <class Group>
STRIDE_DEVICE void sync(const Group& group) {
  group.sync();
}

template <class T>
struct plus {
  STRIDE_METHOD T operator()(T a, T b) const { return a + b; }
};
template <class T>
struct less {
  STRIDE_METHOD T operator()(T a, T b) const { return b < a ? b : a; }
};
template <class T>
struct greater {
  STRIDE_METHOD T operator()(T a, T b) const { return a < b ? b : a; }
};
template <class T>
struct bit_and {
  STRIDE_METHOD T operator()(T a, T b) const { return a & b; }
};
template <class T>
struct bit_or {
  STRIDE_METHOD T operator()(T a, T b) const { return a | b; }
};
template <class T>
struct bit_xor {
  STRIDE_METHOD T operator()(T a, T b) const { return a ^ b; }
};
template <unsigned N, class P, class T, class F>
STRIDE_DEVICE T reduce(const thread_block_tile<N, P>& tile, T value, F combine) {
  for (int lanes = N / 2; lanes > 0; lanes /= 2)
    value = combine(value, tile.shfl_xor(value, lanes));
  return value;
}

}  // namespace cooperative_groups
