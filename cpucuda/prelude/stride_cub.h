// CUB's primitives for a block and for a warp. Threads store their items in slots, one thread (or
// one lane of each group) does the work over all of them, and each thread loads its own results. On
// one processor that is the least work. TempStorage is never read.
#pragma once

#include "stride_cub_types.h"

namespace __stride {

// The items of a block in thread order, N for each thread.
template <class T, int N>
struct BlockItems {
  T* all;
  STRIDE_METHOD BlockItems() : all((T*)__stride_slot(sizeof(T) * N)) {}
  STRIDE_METHOD T* own() const { return all + (size_t)__stride_tid_linear() * N; }
  STRIDE_METHOD void Put(const T (&items)[N]) const {
    for (int i = 0; i < N; ++i) new (own() + i) T(items[i]);
  }
  STRIDE_METHOD void Take(T (&items)[N]) const {
    for (int i = 0; i < N; ++i) items[i] = own()[i];
  }
};

// The lanes of a logical warp of L threads.
template <int L>
struct WarpGroup {
  static_assert(L >= 1 && L <= 32, "a logical warp has 1 to 32 threads");
  static constexpr bool kAligned = (L & (L - 1)) == 0;
  static STRIDE_METHOD int rank() { return kAligned ? lane() & (L - 1) : lane() % L; }
  static STRIDE_METHOD unsigned first() { return lane() - rank(); }
  static STRIDE_METHOD unsigned mask() { return (L == 32 ? ~0u : (1u << L % 32) - 1) << first(); }
};

// Keys in an order of unsigned numbers.
template <class K>
STRIDE_DEVICE unsigned long long radix_bits(K key) {
  constexpr int kBits = 8 * sizeof(K);
  constexpr unsigned long long kTop = 1ull << (kBits - 1);
  if constexpr (__is_same(K, float) || __is_same(K, double) || __is_same(K, __half) ||
                __is_same(K, __nv_bfloat16)) {
    unsigned long long raw = 0;
    __builtin_memcpy(&raw, &key, sizeof(K));
    // Both zeros are one key.
    if (raw == kTop) raw = 0;
    return (raw & kTop) != 0 ? ~raw & (kTop * 2 - 1) : raw | kTop;
  } else if constexpr (__is_signed(K)) {
    return ((unsigned long long)key & (kTop * 2 - 1)) ^ kTop;
  } else {
    return (unsigned long long)key;
  }
}

// A stable merge sort of `count` pairs, with as much memory again. `values` may be null.
template <class K, class V, class F>
STRIDE_DEVICE void merge_sort(K* keys, V* values, K* more_keys, V* more_values, int count, F less) {
  for (int width = 1; width < count; width *= 2) {
    for (int begin = 0; begin < count; begin += 2 * width) {
      int middle = begin + width < count ? begin + width : count;
      int end = begin + 2 * width < count ? begin + 2 * width : count;
      for (int a = begin, b = middle, to = begin; to < end; ++to) {
        bool second = a >= middle || (b < end && less(keys[b], keys[a]));
        int from = second ? b++ : a++;
        more_keys[to] = keys[from];
        if (values != 0) more_values[to] = values[from];
      }
    }
    for (int i = 0; i < count; ++i) {
      keys[i] = more_keys[i];
      if (values != 0) values[i] = more_values[i];
    }
  }
}

}  // namespace __stride

namespace cub {

enum BlockReduceAlgorithm {
  BLOCK_REDUCE_RAKING_COMMUTATIVE_ONLY,
  BLOCK_REDUCE_RAKING,
  BLOCK_REDUCE_WARP_REDUCTIONS
};
enum BlockScanAlgorithm { BLOCK_SCAN_RAKING, BLOCK_SCAN_RAKING_MEMOIZE, BLOCK_SCAN_WARP_SCANS };
enum BlockLoadAlgorithm {
  BLOCK_LOAD_DIRECT,
  BLOCK_LOAD_STRIPED,
  BLOCK_LOAD_VECTORIZE,
  BLOCK_LOAD_TRANSPOSE,
  BLOCK_LOAD_WARP_TRANSPOSE,
  BLOCK_LOAD_WARP_TRANSPOSE_TIMESLICED
};
enum BlockStoreAlgorithm {
  BLOCK_STORE_DIRECT,
  BLOCK_STORE_STRIPED,
  BLOCK_STORE_VECTORIZE,
  BLOCK_STORE_TRANSPOSE,
  BLOCK_STORE_WARP_TRANSPOSE,
  BLOCK_STORE_WARP_TRANSPOSE_TIMESLICED
};
enum BlockHistogramAlgorithm { BLOCK_HISTO_SORT, BLOCK_HISTO_ATOMIC };
enum WarpLoadAlgorithm {
  WARP_LOAD_DIRECT,
  WARP_LOAD_STRIPED,
  WARP_LOAD_VECTORIZE,
  WARP_LOAD_TRANSPOSE
};
enum WarpStoreAlgorithm {
  WARP_STORE_DIRECT,
  WARP_STORE_STRIPED,
  WARP_STORE_VECTORIZE,
  WARP_STORE_TRANSPOSE
};

#define STRIDE_CUB_STORAGE(name) \
  struct TempStorage {           \
    unsigned char unused[16];    \
  };                             \
  STRIDE_METHOD name() {}        \
  explicit STRIDE_METHOD name(TempStorage&) {}

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

namespace __stride_parts {
// The items of a block, and the one before and after a thread's own.
template <class T, int N>
struct Neighbours {
  __stride::BlockItems<T, N> slots;
  STRIDE_METHOD explicit Neighbours(T (&items)[N]) {
    slots.Put(items);
    __stride_cut();
  }
  STRIDE_METHOD int place(int i) const { return (int)__stride_tid_linear() * N + i; }
  STRIDE_METHOD bool is_first(int i) const { return place(i) == 0; }
  STRIDE_METHOD bool is_last(int i) const {
    return place(i) + 1 == (int)__stride::num_threads() * N;
  }
  STRIDE_METHOD const T& before(int i) const { return slots.all[place(i) - 1]; }
  STRIDE_METHOD const T& after(int i) const { return slots.all[place(i) + 1]; }
};
// Some functors want the index, too; some take references to what is not const.
template <class F, class T>
STRIDE_DEVICE auto flag(F& f, T a, T b, int index, int) -> decltype(bool(f(a, b, index))) {
  return f(a, b, index);
}
template <class F, class T>
STRIDE_DEVICE bool flag(F& f, T a, T b, int, long) {
  return f(a, b);
}
}  // namespace __stride_parts

template <class T, int X, int Y = 1, int Z = 1, int = 0>
class BlockDiscontinuity {
  template <int N, class G, class F>
  static STRIDE_METHOD void Heads(G* flags, T (&items)[N], F f, const T* before) {
    __stride_parts::Neighbours<T, N> near(items);
    for (int i = 0; i < N; ++i) {
      if (near.is_first(i) && before == 0) {
        flags[i] = 1;
      } else {
        const T& left = near.is_first(i) ? *before : near.before(i);
        flags[i] = __stride_parts::flag(f, left, items[i], near.place(i), 0);
      }
    }
    __stride_cut();
  }
  template <int N, class G, class F>
  static STRIDE_METHOD void Tails(G* flags, T (&items)[N], F f, const T* after) {
    __stride_parts::Neighbours<T, N> near(items);
    for (int i = 0; i < N; ++i) {
      if (near.is_last(i) && after == 0) {
        flags[i] = 1;
      } else {
        const T& right = near.is_last(i) ? *after : near.after(i);
        flags[i] = __stride_parts::flag(f, items[i], right, near.place(i) + 1, 0);
      }
    }
    __stride_cut();
  }

 public:
  STRIDE_CUB_STORAGE(BlockDiscontinuity)
  template <int N, class G, class F>
  STRIDE_METHOD void FlagHeads(G (&flags)[N], T (&items)[N], F f) {
    Heads(flags, items, f, 0);
  }
  template <int N, class G, class F>
  STRIDE_METHOD void FlagHeads(G (&flags)[N], T (&items)[N], F f, T before) {
    Heads(flags, items, f, &before);
  }
  template <int N, class G, class F>
  STRIDE_METHOD void FlagTails(G (&flags)[N], T (&items)[N], F f) {
    Tails(flags, items, f, 0);
  }
  template <int N, class G, class F>
  STRIDE_METHOD void FlagTails(G (&flags)[N], T (&items)[N], F f, T after) {
    Tails(flags, items, f, &after);
  }
  template <int N, class G, class F>
  STRIDE_METHOD void FlagHeadsAndTails(G (&heads)[N], G (&tails)[N], T (&items)[N], F f) {
    Heads(heads, items, f, 0);
    Tails(tails, items, f, 0);
  }
};

template <class T, int X, int Y = 1, int Z = 1, int = 0>
class BlockAdjacentDifference {
  template <int N, class U, class F>
  static STRIDE_METHOD void Left(T (&in)[N], U (&out)[N], F f, const T* before, int num_valid) {
    __stride_parts::Neighbours<T, N> near(in);
    for (int i = N - 1; i >= 0; --i) {
      bool none = near.place(i) >= num_valid || (near.is_first(i) && before == 0);
      if (none) {
        out[i] = near.slots.own()[i];
      } else {
        // Some functors take references to what is not const.
        T right = near.slots.own()[i], left = near.is_first(i) ? *before : near.before(i);
        out[i] = f(right, left);
      }
    }
    __stride_cut();
  }
  template <int N, class U, class F>
  static STRIDE_METHOD void Right(T (&in)[N], U (&out)[N], F f, const T* after, int num_valid) {
    __stride_parts::Neighbours<T, N> near(in);
    for (int i = 0; i < N; ++i) {
      bool last = near.is_last(i);
      bool none = near.place(i) + 1 >= num_valid && (after == 0 || !last);
      if (none) {
        out[i] = near.slots.own()[i];
      } else {
        T left = near.slots.own()[i], right = last ? *after : near.after(i);
        out[i] = f(left, right);
      }
    }
    __stride_cut();
  }
  static constexpr int kAll = 1 << 30;

 public:
  STRIDE_CUB_STORAGE(BlockAdjacentDifference)
  template <int N, class U, class F>
  STRIDE_METHOD void SubtractLeft(T (&in)[N], U (&out)[N], F f) {
    Left(in, out, f, 0, kAll);
  }
  template <int N, class U, class F>
  STRIDE_METHOD void SubtractLeft(T (&in)[N], U (&out)[N], F f, T before) {
    Left(in, out, f, &before, kAll);
  }
  template <int N, class U, class F>
  STRIDE_METHOD void SubtractLeftPartialTile(T (&in)[N], U (&out)[N], F f, int num_valid) {
    Left(in, out, f, 0, num_valid);
  }
  template <int N, class U, class F>
  STRIDE_METHOD void SubtractRight(T (&in)[N], U (&out)[N], F f) {
    Right(in, out, f, 0, (int)__stride::num_threads() * N);
  }
  template <int N, class U, class F>
  STRIDE_METHOD void SubtractRight(T (&in)[N], U (&out)[N], F f, T after) {
    Right(in, out, f, &after, kAll);
  }
  template <int N, class U, class F>
  STRIDE_METHOD void SubtractRightPartialTile(T (&in)[N], U (&out)[N], F f, int num_valid) {
    Right(in, out, f, 0, num_valid);
  }
};

template <class T, int X, int Y = 1, int Z = 1, int = 0>
class BlockShuffle {
  static STRIDE_METHOD void From(T in, T& out, int other) {
    __stride::BlockItems<T, 1> slots;
    slots.Put({in});
    __stride_cut();
    if (other >= 0 && other < (int)__stride::num_threads()) out = slots.all[other];
    __stride_cut();
  }

 public:
  STRIDE_CUB_STORAGE(BlockShuffle)
  STRIDE_METHOD void Offset(T in, T& out, int distance = 1) {
    From(in, out, (int)__stride_tid_linear() + distance);
  }
  STRIDE_METHOD void Rotate(T in, T& out, unsigned distance = 1) {
    From(in, out, (int)((__stride_tid_linear() + distance) % __stride::num_threads()));
  }
  template <int N>
  STRIDE_METHOD void Up(T (&in)[N], T (&out)[N]) {
    __stride_parts::Neighbours<T, N> near(in);
    for (int i = N - 1; i >= 0; --i) {
      if (!near.is_first(i)) out[i] = near.before(i);
    }
    __stride_cut();
  }
  template <int N>
  STRIDE_METHOD void Down(T (&in)[N], T (&out)[N]) {
    __stride_parts::Neighbours<T, N> near(in);
    for (int i = 0; i < N; ++i) {
      if (!near.is_last(i)) out[i] = near.after(i);
    }
    __stride_cut();
  }
};

// Warps.
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
