// CUB's primitives for a block: reductions, scans, loads, stores, exchanges, sorts, histograms.
#pragma once

#include "stride_cub_items.h"

namespace cub {

template <class T, int X, BlockReduceAlgorithm = BLOCK_REDUCE_WARP_REDUCTIONS, int Y = 1, int Z = 1,
          int = 0>
class BlockReduce {
 public:
  STRIDE_CUB_STORAGE(BlockReduce)
  // Thread 0 has the result.
  template <int N, class F>
  STRIDE_METHOD T Reduce(T (&items)[N], F f) {
    T sum = items[0];
    for (int i = 1; i < N; ++i) sum = f(sum, items[i]);
    return Reduce(sum, f);
  }
  template <class F>
  STRIDE_METHOD T Reduce(T item, F f) {
    return Reduce(item, f, X * Y * Z);
  }
  template <class F>
  STRIDE_METHOD T Reduce(T item, F f, int num_valid) {
    __stride::BlockItems<T, 1> slots;
    slots.Put({item});
    __stride_cut();
    T result = item;
    if (__stride_tid_linear() == 0) {
      int count = (int)__stride::num_threads();
      if (num_valid < count) count = num_valid;
      for (int i = 1; i < count; ++i) result = f(result, slots.all[i]);
    }
    __stride_cut();
    return result;
  }
  STRIDE_METHOD T Sum(T item) { return Reduce(item, __stride::Plus()); }
  STRIDE_METHOD T Sum(T item, int num_valid) { return Reduce(item, __stride::Plus(), num_valid); }
  template <int N>
  STRIDE_METHOD T Sum(T (&items)[N]) {
    return Reduce(items, __stride::Plus());
  }
};

template <class T, int X, BlockScanAlgorithm = BLOCK_SCAN_RAKING, int Y = 1, int Z = 1, int = 0>
class BlockScan {
  struct NoPrefix {};
  // Scans all items of the block; the block's sum, without `initial`, goes to `aggregate`.
  template <bool kInclusive, bool kInitial, int N, class F, class P>
  static STRIDE_METHOD void Scan(T (&in)[N], T (&out)[N], T initial, F f, T& aggregate, P& prefix) {
    constexpr bool kPrefix = !__is_same(P, NoPrefix);
    __stride::BlockItems<T, N> items;
    __stride::BlockItems<T, 1> sums;
    items.Put(in);
    __stride_cut();
    if (__stride_tid_linear() == 0) {
      int count = (int)__stride::num_threads() * N;
      T sum = items.all[0];
      T running = initial;
      if constexpr (kInclusive) {
        if constexpr (kInitial) items.all[0] = f(initial, sum);
      } else {
        if constexpr (kInitial) items.all[0] = initial;
      }
      if constexpr (kInitial) running = f(initial, sum);
      if constexpr (!kInitial) running = sum;
      for (int i = 1; i < count; ++i) {
        T item = items.all[i];
        T next = f(running, item);
        items.all[i] = kInclusive ? next : running;
        running = next;
        sum = f(sum, item);
      }
      new (sums.all) T(sum);
    }
    __stride_cut();
    aggregate = sums.all[0];
    if constexpr (kPrefix) {
      T before = aggregate;
      if (__stride_tid_linear() < 32) before = prefix(aggregate);
      __stride_cut();  // all have read the sum
      if (__stride_tid_linear() == 0) new (sums.all) T(before);
      __stride_cut();
      before = sums.all[0];
      for (int i = 0; i < N; ++i) {
        bool first = !kInclusive && !kInitial && i == 0 && __stride_tid_linear() == 0;
        out[i] = first ? before : f(before, items.own()[i]);
      }
    } else {
      items.Take(out);
    }
    __stride_cut();
  }

 public:
  STRIDE_CUB_STORAGE(BlockScan)
  // Each form for one item and for an array, with and without the block's sum or a prefix.
  template <class F>
  STRIDE_METHOD void InclusiveScan(T in, T& out, F f, T& aggregate) {
    T a[1] = {in}, b[1];
    InclusiveScan(a, b, f, aggregate);
    out = b[0];
  }
  template <class F>
  STRIDE_METHOD void InclusiveScan(T in, T& out, F f) {
    T aggregate;
    InclusiveScan(in, out, f, aggregate);
  }
  template <int N, class F>
  STRIDE_METHOD void InclusiveScan(T (&in)[N], T (&out)[N], F f, T& aggregate) {
    NoPrefix none;
    Scan<true, false>(in, out, in[0], f, aggregate, none);
  }
  template <int N, class F>
  STRIDE_METHOD void InclusiveScan(T (&in)[N], T (&out)[N], F f) {
    T aggregate;
    InclusiveScan(in, out, f, aggregate);
  }
  template <class F, class P, class = decltype(__stride::declare<P&>()(__stride::declare<T>()))>
  STRIDE_METHOD void InclusiveScan(T in, T& out, F f, P& prefix) {
    T a[1] = {in}, b[1];
    InclusiveScan(a, b, f, prefix);
    out = b[0];
  }
  template <int N, class F, class P,
            class = decltype(__stride::declare<P&>()(__stride::declare<T>()))>
  STRIDE_METHOD void InclusiveScan(T (&in)[N], T (&out)[N], F f, P& prefix) {
    T aggregate;
    Scan<true, false>(in, out, in[0], f, aggregate, prefix);
  }

  template <class F>
  STRIDE_METHOD void ExclusiveScan(T in, T& out, T initial, F f, T& aggregate) {
    T a[1] = {in}, b[1];
    ExclusiveScan(a, b, initial, f, aggregate);
    out = b[0];
  }
  template <class F>
  STRIDE_METHOD void ExclusiveScan(T in, T& out, T initial, F f) {
    T aggregate;
    ExclusiveScan(in, out, initial, f, aggregate);
  }
  template <int N, class F>
  STRIDE_METHOD void ExclusiveScan(T (&in)[N], T (&out)[N], T initial, F f, T& aggregate) {
    NoPrefix none;
    Scan<false, true>(in, out, initial, f, aggregate, none);
  }
  template <int N, class F>
  STRIDE_METHOD void ExclusiveScan(T (&in)[N], T (&out)[N], T initial, F f) {
    T aggregate;
    ExclusiveScan(in, out, initial, f, aggregate);
  }
  // Without an initial value, the first item of thread 0 is not defined.
  template <class F, class = decltype(__stride::declare<F&>()(__stride::declare<T>(),
                                                              __stride::declare<T>()))>
  STRIDE_METHOD void ExclusiveScan(T in, T& out, F f) {
    T a[1] = {in}, b[1], aggregate;
    NoPrefix none;
    Scan<false, false>(a, b, in, f, aggregate, none);
    out = b[0];
  }
  template <class F, class P, class = decltype(__stride::declare<P&>()(__stride::declare<T>())),
            class = decltype(__stride::declare<F&>()(__stride::declare<T>(),
                                                     __stride::declare<T>()))>
  STRIDE_METHOD void ExclusiveScan(T in, T& out, F f, P& prefix) {
    T a[1] = {in}, b[1];
    ExclusiveScan(a, b, f, prefix);
    out = b[0];
  }
  template <
      int N, class F, class P, class = decltype(__stride::declare<P&>()(__stride::declare<T>())),
      class = decltype(__stride::declare<F&>()(__stride::declare<T>(), __stride::declare<T>()))>
  STRIDE_METHOD void ExclusiveScan(T (&in)[N], T (&out)[N], F f, P& prefix) {
    T aggregate;
    Scan<false, false>(in, out, in[0], f, aggregate, prefix);
  }

  template <class... More>
  STRIDE_METHOD void InclusiveSum(T in, T& out, More&... more) {
    InclusiveScan(in, out, __stride::Plus(), more...);
  }
  template <int N, class... More>
  STRIDE_METHOD void InclusiveSum(T (&in)[N], T (&out)[N], More&... more) {
    InclusiveScan(in, out, __stride::Plus(), more...);
  }
  STRIDE_METHOD void ExclusiveSum(T in, T& out) { ExclusiveScan(in, out, T(0), __stride::Plus()); }
  STRIDE_METHOD void ExclusiveSum(T in, T& out, T& aggregate) {
    ExclusiveScan(in, out, T(0), __stride::Plus(), aggregate);
  }
  template <class P, class = decltype(__stride::declare<P&>()(__stride::declare<T>()))>
  STRIDE_METHOD void ExclusiveSum(T in, T& out, P& prefix) {
    ExclusiveScan(in, out, __stride::Plus(), prefix);
  }
  template <int N>
  STRIDE_METHOD void ExclusiveSum(T (&in)[N], T (&out)[N]) {
    ExclusiveScan(in, out, T(0), __stride::Plus());
  }
  template <int N>
  STRIDE_METHOD void ExclusiveSum(T (&in)[N], T (&out)[N], T& aggregate) {
    ExclusiveScan(in, out, T(0), __stride::Plus(), aggregate);
  }
  template <int N, class P, class = decltype(__stride::declare<P&>()(__stride::declare<T>()))>
  STRIDE_METHOD void ExclusiveSum(T (&in)[N], T (&out)[N], P& prefix) {
    ExclusiveScan(in, out, __stride::Plus(), prefix);
  }
};

template <int N, class T, class I>
STRIDE_DEVICE void LoadDirectBlocked(int thread, I from, T (&items)[N]) {
  for (int i = 0; i < N; ++i) items[i] = from[thread * N + i];
}
template <int N, class T, class I>
STRIDE_DEVICE void LoadDirectBlocked(int thread, I from, T (&items)[N], int num_valid) {
  for (int i = 0; i < N; ++i) {
    if (thread * N + i < num_valid) items[i] = from[thread * N + i];
  }
}
template <int N, class T, class I, class D>
STRIDE_DEVICE void LoadDirectBlocked(int thread, I from, T (&items)[N], int num_valid,
                                     D otherwise) {
  for (int i = 0; i < N; ++i)
    items[i] = thread * N + i < num_valid ? (T)from[thread * N + i] : (T)otherwise;
}
template <int kThreads, int N, class T, class I>
STRIDE_DEVICE void LoadDirectStriped(int thread, I from, T (&items)[N]) {
  for (int i = 0; i < N; ++i) items[i] = from[thread + i * kThreads];
}
template <int kThreads, int N, class T, class I>
STRIDE_DEVICE void LoadDirectStriped(int thread, I from, T (&items)[N], int num_valid) {
  for (int i = 0; i < N; ++i) {
    if (thread + i * kThreads < num_valid) items[i] = from[thread + i * kThreads];
  }
}
template <int kThreads, int N, class T, class I, class D>
STRIDE_DEVICE void LoadDirectStriped(int thread, I from, T (&items)[N], int num_valid,
                                     D otherwise) {
  for (int i = 0; i < N; ++i)
    items[i] = thread + i * kThreads < num_valid ? (T)from[thread + i * kThreads] : (T)otherwise;
}
template <int N, class T, class I>
STRIDE_DEVICE void StoreDirectBlocked(int thread, I to, T (&items)[N]) {
  for (int i = 0; i < N; ++i) to[thread * N + i] = items[i];
}
template <int N, class T, class I>
STRIDE_DEVICE void StoreDirectBlocked(int thread, I to, T (&items)[N], int num_valid) {
  for (int i = 0; i < N; ++i) {
    if (thread * N + i < num_valid) to[thread * N + i] = items[i];
  }
}
template <int kThreads, int N, class T, class I>
STRIDE_DEVICE void StoreDirectStriped(int thread, I to, T (&items)[N]) {
  for (int i = 0; i < N; ++i) to[thread + i * kThreads] = items[i];
}
template <int kThreads, int N, class T, class I>
STRIDE_DEVICE void StoreDirectStriped(int thread, I to, T (&items)[N], int num_valid) {
  for (int i = 0; i < N; ++i) {
    if (thread + i * kThreads < num_valid) to[thread + i * kThreads] = items[i];
  }
}

template <class T, int X, int N, BlockLoadAlgorithm A = BLOCK_LOAD_DIRECT, int Y = 1, int Z = 1,
          int = 0>
class BlockLoad {
 public:
  STRIDE_CUB_STORAGE(BlockLoad)
  template <class I, class... More>
  STRIDE_METHOD void Load(I from, T (&items)[N], More... more) {
    if constexpr (A == BLOCK_LOAD_STRIPED) {
      LoadDirectStriped<X * Y * Z>((int)__stride_tid_linear(), from, items, more...);
    } else {
      LoadDirectBlocked((int)__stride_tid_linear(), from, items, more...);
    }
  }
};
template <class T, int X, int N, BlockStoreAlgorithm A = BLOCK_STORE_DIRECT, int Y = 1, int Z = 1,
          int = 0>
class BlockStore {
 public:
  STRIDE_CUB_STORAGE(BlockStore)
  template <class I, class... More>
  STRIDE_METHOD void Store(I to, T (&items)[N], More... more) {
    if constexpr (A == BLOCK_STORE_STRIPED) {
      StoreDirectStriped<X * Y * Z>((int)__stride_tid_linear(), to, items, more...);
    } else {
      StoreDirectBlocked((int)__stride_tid_linear(), to, items, more...);
    }
  }
};

template <class T, int X, int N, bool = false, int Y = 1, int Z = 1, int = 0>
class BlockExchange {
  static constexpr int kThreads = X * Y * Z;
  static STRIDE_METHOD int Thread() { return (int)__stride_tid_linear(); }
  static STRIDE_METHOD int Blocked(int i) { return Thread() * N + i; }
  static STRIDE_METHOD int Striped(int i) { return i * kThreads + Thread(); }
  static STRIDE_METHOD int WarpStriped(int i) {
    int warp = Thread() / 32, width = kThreads - warp * 32 < 32 ? kThreads - warp * 32 : 32;
    return warp * 32 * N + i * width + Thread() % 32;
  }
  // Each item goes to `to(i)`, then each thread takes what is at `from(i)`.
  template <class U, class To, class From>
  static STRIDE_METHOD void Move(T (&in)[N], U (&out)[N], To to, From from) {
    __stride::BlockItems<T, N> slots;
    for (int i = 0; i < N; ++i) {
      int at = to(i);
      if (at >= 0) new (slots.all + at) T(in[i]);
    }
    __stride_cut();
    for (int i = 0; i < N; ++i) out[i] = slots.all[from(i)];
    __stride_cut();
  }

 public:
  STRIDE_CUB_STORAGE(BlockExchange)
#define STRIDE_CUB_EXCHANGE(name, to, from)                                   \
  template <class U>                                                          \
  STRIDE_METHOD void name(T(&in)[N], U(&out)[N]) {                            \
    Move(                                                                     \
        in, out, [](int i) { return to(i); }, [](int i) { return from(i); }); \
  }                                                                           \
  STRIDE_METHOD void name(T(&items)[N]) { name(items, items); }
  STRIDE_CUB_EXCHANGE(StripedToBlocked, Striped, Blocked)
  STRIDE_CUB_EXCHANGE(BlockedToStriped, Blocked, Striped)
  STRIDE_CUB_EXCHANGE(WarpStripedToBlocked, WarpStriped, Blocked)
  STRIDE_CUB_EXCHANGE(BlockedToWarpStriped, Blocked, WarpStriped)
#undef STRIDE_CUB_EXCHANGE
  template <class U, class R>
  STRIDE_METHOD void ScatterToBlocked(T (&in)[N], U (&out)[N], R (&ranks)[N]) {
    Move(
        in, out, [&](int i) { return (int)ranks[i]; }, [](int i) { return Blocked(i); });
  }
  template <class U, class R>
  STRIDE_METHOD void ScatterToStriped(T (&in)[N], U (&out)[N], R (&ranks)[N]) {
    Move(
        in, out, [&](int i) { return (int)ranks[i]; }, [](int i) { return Striped(i); });
  }
  template <class R>
  STRIDE_METHOD void ScatterToBlocked(T (&items)[N], R (&ranks)[N]) {
    ScatterToBlocked(items, items, ranks);
  }
  template <class R>
  STRIDE_METHOD void ScatterToStriped(T (&items)[N], R (&ranks)[N]) {
    ScatterToStriped(items, items, ranks);
  }
};

template <class K, int X, int N = 1, class V = NullType, int Y = 1, int Z = 1>
class BlockMergeSort {
  static constexpr bool kValues = !__is_same(V, NullType);

 public:
  STRIDE_CUB_STORAGE(BlockMergeSort)
  template <class F>
  STRIDE_METHOD void StableSort(K (&keys)[N], V (&values)[N], F less) {
    __stride::BlockItems<K, N> all, more;
    __stride::BlockItems<V, N> all_values, more_values;
    all.Put(keys);
    if constexpr (kValues) all_values.Put(values);
    __stride_cut();
    if (__stride_tid_linear() == 0) {
      __stride::merge_sort(all.all, kValues ? all_values.all : (V*)0, more.all, more_values.all,
                           (int)__stride::num_threads() * N, less);
    }
    __stride_cut();
    all.Take(keys);
    if constexpr (kValues) all_values.Take(values);
    __stride_cut();
  }
  template <class F>
  STRIDE_METHOD void StableSort(K (&keys)[N], F less) {
    V none[N];
    StableSort(keys, none, less);
  }
  // Items from `num_valid` on count as `otherwise`, which no key comes after.
  template <class F>
  STRIDE_METHOD void StableSort(K (&keys)[N], F less, int num_valid, K otherwise) {
    for (int i = 0; i < N; ++i) {
      if ((int)__stride_tid_linear() * N + i >= num_valid) keys[i] = otherwise;
    }
    StableSort(keys, less);
  }
  template <class... A>
  STRIDE_METHOD void Sort(K (&keys)[N], A&&... more) {
    StableSort(keys, static_cast<A&&>(more)...);
  }
};

template <class K, int X, int N, class V = NullType, int = 4, bool = true,
          BlockScanAlgorithm = BLOCK_SCAN_WARP_SCANS, int = 0, int Y = 1, int Z = 1, int = 0>
class BlockRadixSort {
  typedef BlockMergeSort<K, X, N, V, Y, Z> Sorter;
  static constexpr int kBits = 8 * sizeof(K);
  static STRIDE_METHOD unsigned long long Digits(K key, int begin_bit, int end_bit) {
    unsigned long long bits = __stride::radix_bits(key) >> begin_bit;
    int count = end_bit - begin_bit;
    return count >= 64 ? bits : bits & ((1ull << count) - 1);
  }
  static STRIDE_METHOD void SortPairs(K (&keys)[N], V (&values)[N], bool down, int begin_bit,
                                      int end_bit) {
    Sorter().StableSort(keys, values, [=](const K& a, const K& b) {
      unsigned long long x = Digits(a, begin_bit, end_bit), y = Digits(b, begin_bit, end_bit);
      return down ? y < x : x < y;
    });
  }
  template <class T>
  static STRIDE_METHOD void Stripe(T (&items)[N]) {
    BlockExchange<T, X, N, false, Y, Z>().BlockedToStriped(items);
  }

 public:
  STRIDE_CUB_STORAGE(BlockRadixSort)
#define STRIDE_CUB_SORT(name, down, finish_keys, finish_values)                                  \
  STRIDE_METHOD void name(K(&keys)[N], int begin_bit = 0, int end_bit = kBits) {                 \
    V none[N];                                                                                   \
    SortPairs(keys, none, down, begin_bit, end_bit);                                             \
    finish_keys;                                                                                 \
  }                                                                                              \
  template <class W,                                                                             \
            class = typename __stride::OnlyIf<__is_same(W, V) && !__is_same(V, NullType)>::type> \
  STRIDE_METHOD void name(K(&keys)[N], W(&values)[N], int begin_bit = 0, int end_bit = kBits) {  \
    SortPairs(keys, values, down, begin_bit, end_bit);                                           \
    finish_keys;                                                                                 \
    finish_values;                                                                               \
  }
  STRIDE_CUB_SORT(Sort, false, (void)0, (void)0)
  STRIDE_CUB_SORT(SortDescending, true, (void)0, (void)0)
  STRIDE_CUB_SORT(SortBlockedToStriped, false, Stripe(keys), Stripe(values))
  STRIDE_CUB_SORT(SortDescendingBlockedToStriped, true, Stripe(keys), Stripe(values))
#undef STRIDE_CUB_SORT
};

template <class T, int X, int N, int kBins, BlockHistogramAlgorithm = BLOCK_HISTO_SORT, int Y = 1,
          int Z = 1, int = 0>
class BlockHistogram {
 public:
  STRIDE_CUB_STORAGE(BlockHistogram)
  template <class C>
  STRIDE_METHOD void InitHistogram(C (&histogram)[kBins]) {
    for (int i = (int)__stride_tid_linear(); i < kBins; i += (int)__stride::num_threads())
      histogram[i] = 0;
  }
  template <class C>
  STRIDE_METHOD void Composite(T (&items)[N], C (&histogram)[kBins]) {
    for (int i = 0; i < N; ++i) atomicAdd(&histogram[items[i]], (C)1);
  }
  template <class C>
  STRIDE_METHOD void Histogram(T (&items)[N], C (&histogram)[kBins]) {
    InitHistogram(histogram);
    __stride_cut();
    Composite(items, histogram);
  }
};

}  // namespace cub
