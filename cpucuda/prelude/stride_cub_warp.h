// CUB's primitives for a warp.
#pragma once

#include "stride_cub_items.h"

namespace cub {

namespace __stride_parts {
// The items of a logical warp. The destructor waits, so that none writes its slot again too early.
template <class T, int L>
struct WarpItems {
  T* slots;
  unsigned present;
  STRIDE_METHOD explicit WarpItems(const T& item) : slots((T*)__stride_slot(sizeof(T))) {
    new (slots + __stride_tid_linear()) T(item);
    slots += __stride::first_of_warp() + __stride::WarpGroup<L>::first();
    present = __stride_wait_warp(__stride::WarpGroup<L>::mask());
  }
  STRIDE_METHOD void Done() const { __stride_wait_warp(present); }
  STRIDE_METHOD bool has(int rank) const {
    return (present >> (__stride::WarpGroup<L>::first() + rank) & 1) != 0;
  }
};
}  // namespace __stride_parts

template <class T, int L = 32, int = 0>
class WarpReduce {
  typedef __stride::WarpGroup<L> Group;
  template <class G, class F>
  static STRIDE_METHOD T Segment(T item, G flag, F f, bool heads) {
    __stride_parts::WarpItems<T, L> items(item);
    __stride_parts::WarpItems<int, L> flags(flag ? 1 : 0);
    T result = item;
    int rank = Group::rank();
    for (int i = rank; i + 1 < L && items.has(i + 1); ++i) {
      if (heads ? flags.slots[i + 1] != 0 : flags.slots[i] != 0) break;
      result = f(result, items.slots[i + 1]);
    }
    flags.Done();
    return result;
  }

 public:
  STRIDE_CUB_STORAGE(WarpReduce)
  // Lane 0 of the logical warp has the result.
  template <class F>
  STRIDE_METHOD T Reduce(T item, F f, int num_valid) {
    __stride_parts::WarpItems<T, L> items(item);
    T result = item;
    if (Group::rank() == 0) {
      for (int i = 1; i < L && i < num_valid; ++i) {
        if (items.has(i)) result = f(result, items.slots[i]);
      }
    }
    items.Done();
    return result;
  }
  template <class F>
  STRIDE_METHOD T Reduce(T item, F f) {
    return Reduce(item, f, L);
  }
  STRIDE_METHOD T Sum(T item) { return Reduce(item, __stride::Plus()); }
  STRIDE_METHOD T Sum(T item, int num_valid) { return Reduce(item, __stride::Plus(), num_valid); }
  STRIDE_METHOD T Max(T item) { return Reduce(item, cub::Max()); }
  STRIDE_METHOD T Min(T item) { return Reduce(item, cub::Min()); }
  template <class G>
  STRIDE_METHOD T HeadSegmentedSum(T item, G flag) {
    return Segment(item, flag, __stride::Plus(), true);
  }
  template <class G>
  STRIDE_METHOD T TailSegmentedSum(T item, G flag) {
    return Segment(item, flag, __stride::Plus(), false);
  }
  template <class G, class F>
  STRIDE_METHOD T HeadSegmentedReduce(T item, G flag, F f) {
    return Segment(item, flag, f, true);
  }
  template <class G, class F>
  STRIDE_METHOD T TailSegmentedReduce(T item, G flag, F f) {
    return Segment(item, flag, f, false);
  }
};

template <class T, int L = 32, int = 0>
class WarpScan {
  typedef __stride::WarpGroup<L> Group;
  // Both scans; without `initial` the exclusive one of lane 0 is not defined.
  template <class F>
  static STRIDE_METHOD void Both(T item, T* initial, F f, T& inclusive, T& exclusive,
                                 T& aggregate) {
    __stride_parts::WarpItems<T, L> items(item);
    int rank = Group::rank();
    T sum = items.slots[0], before = initial != 0 ? *initial : sum;
    for (int i = 1; i <= rank; ++i) {
      before = initial != 0 ? f(*initial, sum) : sum;
      if (items.has(i)) sum = f(sum, items.slots[i]);
    }
    inclusive = initial != 0 ? f(*initial, sum) : sum;
    exclusive = before;
    for (int i = rank + 1; i < L; ++i) {
      if (items.has(i)) sum = f(sum, items.slots[i]);
    }
    aggregate = sum;
    items.Done();
  }

 public:
  STRIDE_CUB_STORAGE(WarpScan)
  template <class F>
  STRIDE_METHOD void InclusiveScan(T in, T& out, F f, T& aggregate) {
    T unused;
    Both(in, 0, f, out, unused, aggregate);
  }
  template <class F>
  STRIDE_METHOD void InclusiveScan(T in, T& out, F f) {
    T aggregate;
    InclusiveScan(in, out, f, aggregate);
  }
  template <class F>
  STRIDE_METHOD void ExclusiveScan(T in, T& out, T initial, F f, T& aggregate) {
    T unused;
    Both(in, &initial, f, unused, out, aggregate);
  }
  template <class F>
  STRIDE_METHOD void ExclusiveScan(T in, T& out, T initial, F f) {
    T aggregate;
    ExclusiveScan(in, out, initial, f, aggregate);
  }
  template <class F, class = decltype(__stride::declare<F&>()(__stride::declare<T>(),
                                                              __stride::declare<T>()))>
  STRIDE_METHOD void ExclusiveScan(T in, T& out, F f) {
    T unused, aggregate;
    Both(in, 0, f, unused, out, aggregate);
  }
  STRIDE_METHOD void InclusiveSum(T in, T& out) { InclusiveScan(in, out, __stride::Plus()); }
  STRIDE_METHOD void InclusiveSum(T in, T& out, T& aggregate) {
    InclusiveScan(in, out, __stride::Plus(), aggregate);
  }
  STRIDE_METHOD void ExclusiveSum(T in, T& out) { ExclusiveScan(in, out, T(0), __stride::Plus()); }
  STRIDE_METHOD void ExclusiveSum(T in, T& out, T& aggregate) {
    ExclusiveScan(in, out, T(0), __stride::Plus(), aggregate);
  }
  template <class F>
  STRIDE_METHOD void Scan(T in, T& inclusive, T& exclusive, F f) {
    T aggregate;
    Both(in, 0, f, inclusive, exclusive, aggregate);
  }
  template <class F>
  STRIDE_METHOD void Scan(T in, T& inclusive, T& exclusive, T initial, F f) {
    T aggregate;
    Both(in, &initial, f, inclusive, exclusive, aggregate);
  }
  STRIDE_METHOD T Broadcast(T in, unsigned from) {
    __stride_parts::WarpItems<T, L> items(in);
    T result = items.slots[from];
    items.Done();
    return result;
  }
};

template <class T, int N, WarpLoadAlgorithm A = WARP_LOAD_DIRECT, int L = 32, int = 0>
class WarpLoad {
 public:
  STRIDE_CUB_STORAGE(WarpLoad)
  template <class I, class... More>
  STRIDE_METHOD void Load(I from, T (&items)[N], More... more) {
    int rank = __stride::WarpGroup<L>::rank();
    if constexpr (A == WARP_LOAD_STRIPED) {
      LoadDirectStriped<L>(rank, from, items, more...);
    } else {
      LoadDirectBlocked(rank, from, items, more...);
    }
  }
};
template <class T, int N, WarpStoreAlgorithm A = WARP_STORE_DIRECT, int L = 32, int = 0>
class WarpStore {
 public:
  STRIDE_CUB_STORAGE(WarpStore)
  template <class I, class... More>
  STRIDE_METHOD void Store(I to, T (&items)[N], More... more) {
    int rank = __stride::WarpGroup<L>::rank();
    if constexpr (A == WARP_STORE_STRIPED) {
      StoreDirectStriped<L>(rank, to, items, more...);
    } else {
      StoreDirectBlocked(rank, to, items, more...);
    }
  }
};

}  // namespace cub
