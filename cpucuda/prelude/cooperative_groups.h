// Cooperative groups: the grid, the block, tiles of a warp, and the active threads of a warp.
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
  struct arrival_token {};
  static STRIDE_METHOD arrival_token barrier_arrive() { return arrival_token(); }
  static STRIDE_METHOD void barrier_wait(arrival_token&&) { __syncthreads(); }
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

template <unsigned N, class Parent>
class thread_block_tile;

// Threads of the group that the tile is a part of.
template <class Parent>
struct parent_threads {
  static STRIDE_METHOD unsigned count() { return __stride::num_threads(); }
};
template <unsigned N, class P>
struct parent_threads<thread_block_tile<N, P>> {
  static STRIDE_METHOD unsigned count() { return N; }
};

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
  static STRIDE_METHOD unsigned meta_group_rank() {
    return __stride_tid_linear() % parent_threads<Parent>::count() / N;
  }
  static STRIDE_METHOD unsigned meta_group_size() {
    return (parent_threads<Parent>::count() + N - 1) / N;
  }
  // The lanes of the warp; for the functions below.
  static STRIDE_METHOD unsigned warp_lanes() { return lanes(); }
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
  template <class T>
  static STRIDE_METHOD unsigned match_any(T value) {
    return __match_any_sync(lanes(), value) >> first_lane();
  }
  template <class T>
  static STRIDE_METHOD unsigned match_all(T value, int& all) {
    return __match_all_sync(lanes(), value, &all) >> first_lane();
  }
};
template <unsigned N, class Parent>
STRIDE_DEVICE thread_block_tile<N, Parent> tiled_partition(const Parent&) {
  return thread_block_tile<N, Parent>();
}

// The lanes of the warp that reached coalesced_threads() together, or a part of them.
class coalesced_group {
  unsigned mask_;
  unsigned part_ = 0, parts_ = 1;
  // The lane of the warp that has this rank of the group.
  STRIDE_METHOD unsigned lane_of(unsigned rank) const {
    unsigned left = mask_;
    for (unsigned i = 0; i < rank && left != 0; ++i) left &= left - 1;
    return left == 0 ? __stride::lane() : (unsigned)__ffs((int)left) - 1;
  }
  // Lanes of the warp as ranks of the group.
  STRIDE_METHOD unsigned packed(unsigned lanes) const {
    unsigned result = 0, rank = 0;
    for (unsigned left = mask_; left != 0; left &= left - 1, ++rank)
      result |= (lanes >> (__ffs((int)left) - 1) & 1u) << rank;
    return result;
  }

 public:
  explicit STRIDE_METHOD coalesced_group(unsigned mask, unsigned part = 0, unsigned parts = 1)
      : mask_(mask), part_(part), parts_(parts) {}
  STRIDE_METHOD void sync() const { __stride_wait_warp(mask_); }
  STRIDE_METHOD unsigned size() const { return __popc(mask_); }
  STRIDE_METHOD unsigned num_threads() const { return __popc(mask_); }
  STRIDE_METHOD unsigned thread_rank() const {
    return __popc(mask_ & ((1u << __stride::lane()) - 1));
  }
  STRIDE_METHOD unsigned meta_group_rank() const { return part_; }
  STRIDE_METHOD unsigned meta_group_size() const { return parts_; }
  STRIDE_METHOD unsigned warp_lanes() const { return mask_; }
  STRIDE_METHOD int any(int predicate) const {
    return __stride::vote(mask_, predicate != 0).yes != 0;
  }
  STRIDE_METHOD int all(int predicate) const { return __stride::vote(mask_, predicate != 0).all(); }
  STRIDE_METHOD unsigned ballot(int predicate) const {
    return packed(__stride::vote(mask_, predicate != 0).yes);
  }
  template <class T>
  STRIDE_METHOD unsigned match_any(T value) const {
    return packed(__match_any_sync(mask_, value));
  }
  template <class T>
  STRIDE_METHOD unsigned match_all(T value, int& all) const {
    return packed(__match_all_sync(mask_, value, &all));
  }
  template <class T>
  STRIDE_METHOD T shfl(T v, unsigned rank) const {
    return __stride::shuffle(mask_, v, (int)lane_of(rank), 32);
  }
  template <class T>
  STRIDE_METHOD T shfl_up(T v, unsigned delta) const {
    unsigned rank = thread_rank();
    return __stride::exchange(mask_, v, lane_of(rank < delta ? rank : rank - delta));
  }
  template <class T>
  STRIDE_METHOD T shfl_down(T v, unsigned delta) const {
    unsigned rank = thread_rank();
    return __stride::exchange(mask_, v, lane_of(rank + delta < size() ? rank + delta : rank));
  }
};
STRIDE_DEVICE coalesced_group coalesced_threads() { return coalesced_group(__activemask()); }

// The threads of `group` with the same label or answer as this one.
template <class Group, class T>
STRIDE_DEVICE coalesced_group labeled_partition(const Group& group, T label) {
  unsigned mine = __match_any_sync(group.warp_lanes(), label);
  // Parts are counted by their first lanes.
  bool leads = (unsigned)__ffs((int)mine) - 1 == __stride::lane();
  unsigned leaders = __stride::vote(group.warp_lanes(), leads).yes;
  unsigned before = leaders & ((1u << (__ffs((int)mine) - 1)) - 1);
  return coalesced_group(mine, __popc(before), __popc(leaders));
}
template <class Group>
STRIDE_DEVICE coalesced_group binary_partition(const Group& group, bool predicate) {
  __stride::Vote vote = __stride::vote(group.warp_lanes(), predicate);
  return coalesced_group(predicate ? vote.yes : vote.present & ~vote.yes, predicate ? 1 : 0, 2);
}

// Any of the groups above, chosen while the kernel runs.
class thread_group {
  bool is_block_;
  unsigned mask_;

 public:
  STRIDE_METHOD thread_group(const thread_block&) : is_block_(true), mask_(0) {}
  STRIDE_METHOD thread_group(const coalesced_group& group)
      : is_block_(false), mask_(group.warp_lanes()) {}
  template <unsigned N, class P>
  STRIDE_METHOD thread_group(const thread_block_tile<N, P>& tile)
      : is_block_(false), mask_(tile.warp_lanes()) {}
  explicit STRIDE_METHOD thread_group(unsigned mask) : is_block_(false), mask_(mask) {}
  STRIDE_METHOD void sync() const {
    if (is_block_) {
      __syncthreads();
    } else {
      __stride_wait_warp(mask_);
    }
  }
  STRIDE_METHOD unsigned long long size() const {
    return is_block_ ? __stride::num_threads() : (unsigned)__popc(mask_);
  }
  STRIDE_METHOD unsigned long long num_threads() const { return size(); }
  STRIDE_METHOD unsigned long long thread_rank() const {
    return is_block_ ? __stride_tid_linear()
                     : (unsigned)__popc(mask_ & ((1u << __stride::lane()) - 1));
  }
  STRIDE_METHOD unsigned warp_lanes() const { return mask_; }
  STRIDE_METHOD bool is_block() const { return is_block_; }
};
STRIDE_DEVICE thread_group tiled_partition(const thread_group& parent, unsigned size) {
  if (parent.is_block()) {
    if (size == 0 || size > 32 || (size & (size - 1)) != 0)
      __stride::fail("the CPU device has tiles of 1, 2, 4, 8, 16 or 32 threads", 0, 0);
    unsigned first = __stride::lane() & ~(size - 1);
    return thread_group((size == 32 ? ~0u : (1u << size) - 1) << first);
  }
  // The next `size` lanes of the parent that have this one.
  unsigned left = parent.warp_lanes(), skip = (unsigned)parent.thread_rank() / size * size;
  for (unsigned i = 0; i < skip; ++i) left &= left - 1;
  unsigned mask = 0;
  for (unsigned i = 0; i < size && left != 0; ++i, left &= left - 1) mask |= left & (0u - left);
  return thread_group(mask);
}
STRIDE_DEVICE thread_group this_thread() { return thread_group(1u << __stride::lane()); }

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
template <class T, class F>
STRIDE_DEVICE T reduce(const coalesced_group& group, T value, F combine) {
  return __stride::reduce_lanes(group.warp_lanes(), value, combine);
}

// <cooperative_groups/scan.h>: over the lanes of a tile or of coalesced threads.
template <class Group, class T, class F>
STRIDE_DEVICE T inclusive_scan(const Group& group, T value, F combine) {
  T* slot = (T*)__stride_slot(sizeof(T));
  slot[__stride_tid_linear()] = value;
  unsigned present = __stride_wait_warp(group.warp_lanes());
  T result = value;
  bool first = true;
  for (unsigned i = 0; i <= __stride::lane(); ++i) {
    if ((present >> i & 1) == 0) continue;
    T item = slot[__stride::first_of_warp() + i];
    result = first ? item : combine(result, item);
    first = false;
  }
  __stride_wait_warp(present);
  return result;
}
template <class Group, class T>
STRIDE_DEVICE T inclusive_scan(const Group& group, T value) {
  return inclusive_scan(group, value, plus<T>());
}
// Rank 0 has T(), which is the neutral element of a sum alone, as CUDA has it.
template <class Group, class T, class F>
STRIDE_DEVICE T exclusive_scan(const Group& group, T value, F combine) {
  T sum = group.shfl_up(inclusive_scan(group, value, combine), 1);
  return group.thread_rank() == 0 ? T() : sum;
}
template <class Group, class T>
STRIDE_DEVICE T exclusive_scan(const Group& group, T value) {
  return exclusive_scan(group, value, plus<T>());
}

// <cooperative_groups/memcpy_async.h>: each thread copies its part at once; wait() is a barrier.
template <class Group, class Size>
STRIDE_DEVICE void memcpy_async(const Group& group, void* to, const void* from, Size bytes) {
  size_t all = bytes, threads = group.size(), part = (all / threads + 15) / 16 * 16;
  if (part == 0) part = 16;
  size_t begin = part * group.thread_rank();
  if (begin >= all) return;
  __builtin_memcpy((char*)to + begin, (const char*)from + begin,
                   all - begin < part ? all - begin : part);
}
template <class Group, class T, class ToLayout, class FromLayout>
STRIDE_DEVICE void memcpy_async(const Group& group, T* to, const ToLayout& to_count, const T* from,
                                const FromLayout& from_count) {
  size_t count = (size_t)to_count < (size_t)from_count ? (size_t)to_count : (size_t)from_count;
  memcpy_async(group, to, from, count * sizeof(T));
}
template <class Group>
STRIDE_DEVICE void wait(const Group& group) {
  group.sync();
}
template <unsigned stages, class Group>
STRIDE_DEVICE void wait_prior(const Group& group) {
  group.sync();
}
template <class Group, class F, class... A>
STRIDE_DEVICE void invoke_one(const Group& group, F&& f, A&&... arguments) {
  if (group.thread_rank() == 0) f(static_cast<A&&>(arguments)...);
}

}  // namespace cooperative_groups
