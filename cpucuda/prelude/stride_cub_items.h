// Parts that CUB's primitives share: a thread's items in slots, a sort, and the names of
// algorithms.
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

}  // namespace cub
