// Sorts keys, unsigned numbers of 32 or 64 bits, with a processor's AVX-512 vectors: a quicksort
// whose partitions compress vectors, with sorting networks for up to 16 vectors. Networks and order
// of steps: Bramas, "A novel hybrid quicksort algorithm vectorized using AVX-512 on Intel Skylake",
// 2017; Wassenberg et al., "Vectorized and performance-portable quicksort", 2022.
#if !ST_CUDA && defined(__AVX512F__) && defined(__AVX512VL__)
#define ST_VECTORS 1
// All functions here use vectors of 64 bytes, whatever width the processor's tuning prefers.
#define ST_512 __attribute__((min_vector_width(512)))

template <class K>
struct Lanes;
template <>
struct Lanes<st_u32> {
  typedef st_u32 V __attribute__((vector_size(64)));
  typedef int Bits __attribute__((vector_size(64)));
  typedef V Loose __attribute__((aligned(4), may_alias));
  typedef unsigned short Mask;
  static constexpr int kCount = 16;
  template <int kFlip>
  ST_FN V flipped(V v) {
    return __builtin_shufflevector(v, v, 0 ^ kFlip, 1 ^ kFlip, 2 ^ kFlip, 3 ^ kFlip, 4 ^ kFlip,
                                   5 ^ kFlip, 6 ^ kFlip, 7 ^ kFlip, 8 ^ kFlip, 9 ^ kFlip,
                                   10 ^ kFlip, 11 ^ kFlip, 12 ^ kFlip, 13 ^ kFlip, 14 ^ kFlip,
                                   15 ^ kFlip);
  }
  // Lanes with this bit set in their number come from b.
  template <int kBit>
  ST_FN V blended(V a, V b) {
    constexpr int k = 16;
    return __builtin_shufflevector(
        a, b, 0, 1 & kBit ? k + 1 : 1, 2 & kBit ? k + 2 : 2, 3 & kBit ? k + 3 : 3,
        4 & kBit ? k + 4 : 4, 5 & kBit ? k + 5 : 5, 6 & kBit ? k + 6 : 6, 7 & kBit ? k + 7 : 7,
        8 & kBit ? k + 8 : 8, 9 & kBit ? k + 9 : 9, 10 & kBit ? k + 10 : 10,
        11 & kBit ? k + 11 : 11, 12 & kBit ? k + 12 : 12, 13 & kBit ? k + 13 : 13,
        14 & kBit ? k + 14 : 14, 15 & kBit ? k + 15 : 15);
  }
  ST_FN Mask below(V a, V b) {
    return (Mask)__builtin_ia32_ucmpd512_mask((Bits)a, (Bits)b, 1, (Mask)-1);
  }
  ST_FN V compressed(V v, Mask mask) {
    return (V)__builtin_ia32_compresssi512_mask((Bits)v, (Bits)v, mask);
  }
  ST_FN void store_some(st_u32* to, V v, Mask mask) {
    __builtin_ia32_storedqusi512_mask((int*)to, (Bits)v, mask);
  }
  ST_FN V load_some(const st_u32* from, V others, Mask mask) {
    return (V)__builtin_ia32_loaddqusi512_mask((const int*)from, (Bits)others, mask);
  }
};
template <>
struct Lanes<st_u64> {
  typedef st_u64 V __attribute__((vector_size(64)));
  typedef long long Bits __attribute__((vector_size(64)));
  typedef V Loose __attribute__((aligned(8), may_alias));
  typedef unsigned char Mask;
  static constexpr int kCount = 8;
  template <int kFlip>
  ST_FN V flipped(V v) {
    return __builtin_shufflevector(v, v, 0 ^ kFlip, 1 ^ kFlip, 2 ^ kFlip, 3 ^ kFlip, 4 ^ kFlip,
                                   5 ^ kFlip, 6 ^ kFlip, 7 ^ kFlip);
  }
  template <int kBit>
  ST_FN V blended(V a, V b) {
    constexpr int k = 8;
    return __builtin_shufflevector(a, b, 0, 1 & kBit ? k + 1 : 1, 2 & kBit ? k + 2 : 2,
                                   3 & kBit ? k + 3 : 3, 4 & kBit ? k + 4 : 4, 5 & kBit ? k + 5 : 5,
                                   6 & kBit ? k + 6 : 6, 7 & kBit ? k + 7 : 7);
  }
  ST_FN Mask below(V a, V b) {
    return (Mask)__builtin_ia32_ucmpq512_mask((Bits)a, (Bits)b, 1, (Mask)-1);
  }
  ST_FN V compressed(V v, Mask mask) {
    return (V)__builtin_ia32_compressdi512_mask((Bits)v, (Bits)v, mask);
  }
  ST_FN void store_some(st_u64* to, V v, Mask mask) {
    __builtin_ia32_storedqudi512_mask((long long*)to, (Bits)v, mask);
  }
  ST_FN V load_some(const st_u64* from, V others, Mask mask) {
    return (V)__builtin_ia32_loaddqudi512_mask((const long long*)from, (Bits)others, mask);
  }
};
template <class K>
ST_FN typename Lanes<K>::V load_lanes(const K* from) {
  return *(const typename Lanes<K>::Loose*)from;
}
template <class K>
ST_FN void store_lanes(K* to, typename Lanes<K>::V v) {
  *(typename Lanes<K>::Loose*)to = v;
}
template <class K>
ST_FN typename Lanes<K>::V all_lanes(K key) {
  return typename Lanes<K>::V{} + key;
}
template <class K>
ST_FN typename Lanes<K>::Mask first_lanes(int count) {
  return (typename Lanes<K>::Mask)((1u << count) - 1);
}

// Orders rows a and b lane by lane.
template <class V>
ST_FN void order_rows(V* rows, int a, int b) {
  const V x = rows[a], y = rows[b];
  rows[a] = __builtin_elementwise_min(x, y);
  rows[b] = __builtin_elementwise_max(x, y);
}
// Batcher's odd-even merge sort of kCount rows from kFirst on, each kStep apart.
template <int kFirst, int kCount, int kStep, class V>
ST_FN void merge_rows(V* rows) {
  constexpr int kNext = 2 * kStep;
  if constexpr (kNext < kCount) {
    merge_rows<kFirst, kCount, kNext>(rows);
    merge_rows<kFirst + kStep, kCount, kNext>(rows);
#pragma unroll
    for (int i = kFirst + kStep; i + kStep < kFirst + kCount; i += kNext)
      order_rows(rows, i, i + kStep);
  } else {
    order_rows(rows, kFirst, kFirst + kStep);
  }
}
template <int kFirst, int kCount, class V>
ST_FN void sort_columns(V* rows) {
  if constexpr (kCount > 1) {
    sort_columns<kFirst, kCount / 2>(rows);
    sort_columns<kFirst + kCount / 2, kCount / 2>(rows);
    merge_rows<kFirst, kCount, 1>(rows);
  }
}
// Merges bitonic sequences of kCount rows, in which groups of kWidth lanes have the rows' second
// half reversed.
template <class K, int kWidth, int kFirst, int kCount, class V>
ST_FN void merge_halves(V* rows) {
  if constexpr (kCount > 1) {
#pragma unroll
    for (int i = 0; i < kCount / 2; ++i) {
      rows[kFirst + kCount - 1 - i] =
          Lanes<K>::template flipped<kWidth - 1>(rows[kFirst + kCount - 1 - i]);
      order_rows(rows, kFirst + i, kFirst + kCount - 1 - i);
    }
    merge_halves<K, kWidth, kFirst, kCount / 2>(rows);
    merge_halves<K, kWidth, kFirst + kCount / 2, kCount / 2>(rows);
  }
}
// Orders each row's lanes and the lanes that the flip pairs with them, lower ones first.
template <class K, int kFlip, int kBit, int kRows, class V>
ST_FN void order_lanes(V* rows) {
#pragma unroll
  for (int i = 0; i < kRows; ++i) {
    const V other = Lanes<K>::template flipped<kFlip>(rows[i]);
    rows[i] = Lanes<K>::template blended<kBit>(__builtin_elementwise_min(rows[i], other),
                                               __builtin_elementwise_max(rows[i], other));
  }
}
template <class K, int kDistance, int kRows, class V>
ST_FN void merge_lanes(V* rows) {
  if constexpr (kDistance > 0) {
    order_lanes<K, kDistance, kDistance, kRows>(rows);
    merge_lanes<K, kDistance / 2, kRows>(rows);
  }
}
// Merges columns of kWidth / 2 sorted lanes to columns of kWidth, and so on to whole rows.
template <class K, int kWidth, int kRows, class V>
ST_FN void merge_columns(V* rows) {
  if constexpr (kWidth <= Lanes<K>::kCount) {
    merge_halves<K, kWidth, 0, kRows>(rows);
    order_lanes<K, kWidth - 1, kWidth / 2, kRows>(rows);
    merge_lanes<K, kWidth / 4, kRows>(rows);
    merge_columns<K, 2 * kWidth, kRows>(rows);
  }
}
template <class K, int kRows>
ST_CALL ST_512 void sort_rows(const K* from, int count, K* to) {
  typedef typename Lanes<K>::V V;
  constexpr int kCount = Lanes<K>::kCount;
  const V last = all_lanes<K>(~(K)0);
  V rows[kRows];
#pragma unroll
  for (int i = 0; i < kRows; ++i) {
    const int left = count - i * kCount;
    rows[i] = left >= kCount ? load_lanes(from + i * kCount)
              : left > 0     ? Lanes<K>::load_some(from + i * kCount, last, first_lanes<K>(left))
                             : last;
  }
  sort_columns<0, kRows>(rows);
  merge_columns<K, 2, kRows>(rows);
#pragma unroll
  for (int i = 0; i < kRows; ++i) {
    const int left = count - i * kCount;
    if (left >= kCount) {
      store_lanes(to + i * kCount, rows[i]);
    } else if (left > 0) {
      Lanes<K>::store_some(to + i * kCount, rows[i], first_lanes<K>(left));
    }
  }
}
// Sorts at most 16 vectors. `to` may overlap `from`.
template <class K>
ST_FN ST_512 void sort_few(const K* from, int count, K* to) {
  constexpr int kCount = Lanes<K>::kCount;
  if (count > 8 * kCount) {
    sort_rows<K, 16>(from, count, to);
  } else if (count > 4 * kCount) {
    sort_rows<K, 8>(from, count, to);
  } else if (count > 2 * kCount) {
    sort_rows<K, 4>(from, count, to);
  } else if (count > kCount) {
    sort_rows<K, 2>(from, count, to);
  } else {
    sort_rows<K, 1>(from, count, to);
  }
}

// Writes keys below the pivot from the start of `to` forwards, all others from its end backwards.
// Returns the number of keys below.
template <class K>
ST_CALL ST_512 st_i64 part_keys(const K* from, K* to, st_i64 count, K pivot) {
  typedef Lanes<K> L;
  typedef typename L::V V;
  const V pivots = all_lanes<K>(pivot);
  K *low = to, *high = to + count;
  st_i64 i = 0;
#pragma unroll 4
  for (; i + L::kCount <= count; i += L::kCount) {
    const V keys = load_lanes(from + i);
    const typename L::Mask mask = L::below(keys, pivots);
    const int some = __builtin_popcount(mask), others = L::kCount - some;
    // There is room for a whole vector: for these keys and later ones.
    store_lanes(low, L::compressed(keys, mask));
    low += some;
    high -= others;
    L::store_some(high, L::compressed(keys, (typename L::Mask) ~mask), first_lanes<K>(others));
  }
  if (i < count) {
    const int left = (int)(count - i);
    const typename L::Mask all = first_lanes<K>(left);
    const V keys = L::load_some(from + i, pivots, all);
    const typename L::Mask mask = L::below(keys, pivots) & all;
    const int some = __builtin_popcount(mask);
    L::store_some(low, L::compressed(keys, mask), first_lanes<K>(some));
    low += some;
    L::store_some(low, L::compressed(keys, (typename L::Mask)(all & ~mask)),
                  first_lanes<K>(left - some));
  }
  return low - to;
}

// The median of a sample, near the median of all.
template <class K, int kRows>
ST_CALL ST_512 K middle_of_some(const K* keys, st_i64 count, st_u64 seed) {
  constexpr int kSome = kRows * Lanes<K>::kCount;
  K some[kSome];
  for (int i = 0; i < kSome; ++i) {
    seed = seed * 0x5851F42D4C957F2Dull + 0x14057B7EF767814Full;  // Knuth's MMIX
    some[i] = keys[(st_i64)((unsigned __int128)seed * (st_u64)count >> 64)];
  }
  sort_rows<K, kRows>(some, kSome, some);
  return some[kSome / 2];
}
template <class K>
ST_FN K pivot_of(const K* keys, st_i64 count) {
  return count < 64 * Lanes<K>::kCount ? middle_of_some<K, 1>(keys, count, (st_u64)count)
                                       : middle_of_some<K, 4>(keys, count, (st_u64)count);
}

// Sorts a's keys in place, with b as equally large work memory. Keys in unwanted parts [begin, end)
// stay unsorted, in a or b.
template <class K, class Wanted>
ST_FN ST_512 void sort_wanted(K* a, K* b, st_i64 count, const Wanted& wanted) {
  struct Part {
    st_i64 begin, count;
    bool in_b;
  };
  Part parts[64];  // each has at most half the keys of the one before
  int num = 1;
  parts[0] = Part{0, count, false};
  while (num > 0) {
    const Part part = parts[--num];
    if (!wanted(part.begin, part.begin + part.count)) continue;
    const K* const from = (part.in_b ? b : a) + part.begin;
    if (part.count <= 16 * Lanes<K>::kCount) {
      sort_few(from, (int)part.count, a + part.begin);
      continue;
    }
    K* const to = (part.in_b ? a : b) + part.begin;
    const K pivot = pivot_of(from, part.count);
    st_i64 below = part_keys(from, to, part.count, pivot);
    Part low = {part.begin, below, !part.in_b};
    if (below == 0) {
      // The pivot is the least key: all keys equal to it are then in place.
      below = pivot == ~(K)0 ? part.count : part_keys(from, to, part.count, (K)(pivot + 1));
      for (st_i64 i = 0; i < below; ++i) a[part.begin + i] = pivot;
      low.count = 0;
    }
    const Part high = {part.begin + below, part.count - below, !part.in_b};
    const bool low_first = low.count > high.count;
    const Part greater = low_first ? low : high, lesser = low_first ? high : low;
    if (greater.count > 0) parts[num++] = greater;
    if (lesser.count > 0) parts[num++] = lesser;
  }
}
template <class K>
ST_CALL ST_512 void sort_keys(K* a, K* b, st_i64 count) {
  sort_wanted(a, b, count, [](st_i64, st_i64) { return true; });
}

// Merges sorted keys. `to` must not overlap a or b.
template <class K>
ST_CALL ST_512 void merge_keys(const K* a, st_i64 a_count, const K* b, st_i64 b_count, K* to) {
  typedef Lanes<K> L;
  typedef typename L::V V;
  const V last = all_lanes<K>(~(K)0);
  const K *const a_end = a + a_count, *const b_end = b + b_count;
  K* const end = to + a_count + b_count;
  // Takes keys from the input with the smaller next key; after its end, largest keys.
  auto next = [&]() {
    const bool from_b = a == a_end || (b != b_end && *b < *a);
    const K* const from = from_b ? b : a;
    const st_i64 left = (from_b ? b_end : a_end) - from;
    const V keys =
        left >= L::kCount ? load_lanes(from) : L::load_some(from, last, first_lanes<K>((int)left));
    const st_i64 step = left < L::kCount ? left : L::kCount;
    a += from_b ? 0 : step;
    b += from_b ? step : 0;
    return keys;
  };
  V rows[2];
  rows[1] = next();
  while (to < end) {
    rows[0] = next();
    rows[0] = L::template flipped<L::kCount - 1>(rows[0]);
    order_rows(rows, 0, 1);
    merge_lanes<K, L::kCount / 2, 2>(rows);
    if (end - to >= L::kCount) {
      store_lanes(to, rows[0]);
    } else {
      L::store_some(to, rows[0], first_lanes<K>((int)(end - to)));
    }
    to += L::kCount;
  }
}
#else
#define ST_VECTORS 0
#define ST_512
#endif
