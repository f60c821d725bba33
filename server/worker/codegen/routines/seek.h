// Elements by their rank in a row, without a sort: digit by digit of their keys, from the highest.
// The elements whose keys begin with the digits found so far are counted by the next digit, and the
// counts say which digit the wanted one has. After ranking.h; its user defines
//   num_ranks(launch)                  at most kMostRanks
//   rank_of(launch, number, j)         of row `number`, in [0, n)
//   found(launch, number, j, value)    takes the element of that rank
// Passes: 3 finds all of a row by one block. For few long rows instead: 4 begins; then for each
// digit, pass[2], 5 counts chunks of pass[0] elements, of which a row has pass[1], and 6 chooses.
ST_FN int num_ranks(const Launch& launch);
ST_FN st_i64 rank_of(const Launch& launch, st_i64 number, int j);
ST_FN void found(const Launch& launch, st_i64 number, int j, T0 value);

constexpr int kMostRanks = 8;
#if ST_CUDA
constexpr int kDigitBits = 8;
#else
constexpr int kDigitBits = 11;
#endif
constexpr int kBins = 1 << kDigitBits, kGroups = 16, kGroupBins = kBins / kGroups;
// Complex numbers have no key of 64 bits; they are sorted.
constexpr int kKeyBits = sizeof(typename st_stored<T0>::type) > 8
                             ? 64
                             : 8 * (int)sizeof(typename st_stored<T0>::type);
constexpr int kDigits = (kKeyBits + kDigitBits - 1) / kDigitBits;

// Unsigned numbers in the elements' order: NaN last, all of them alike.
template <class T>
ST_FN st_u64 key_of(T x) {
  constexpr st_kind kind = st_traits<T>::kind;
  constexpr st_u64 sign = (st_u64)1 << (kKeyBits - 1), all = sign | (sign - 1);
  if constexpr (kind == ST_BOOL) {
    return x ? 1 : 0;
  } else if constexpr (kind == ST_INT) {
    const st_u64 bits = (st_u64)(typename st_traits<T>::as_unsigned)x;
    return st_traits<T>::is_signed ? bits ^ sign : bits;
  } else if constexpr (kind == ST_FLOAT) {
    const st_u64 bits = st_bits(x);
    return x != x ? all : bits & sign ? bits ^ all : bits | sign;
  } else if constexpr (kind == ST_HALF) {
    const float wide = st_to_float(x);
    const st_u64 bits = x.bits;
    return wide != wide ? all : bits & sign ? bits ^ all : bits | sign;
  } else {
    return 0;
  }
}
ST_FN float float_of_bits(st_u64 bits, const float*) { return st_float_of((st_u32)bits); }
ST_FN double float_of_bits(st_u64 bits, const double*) { return st_double_of(bits); }
template <class T>
ST_FN T value_of(st_u64 key) {
  constexpr st_kind kind = st_traits<T>::kind;
  constexpr st_u64 sign = (st_u64)1 << (kKeyBits - 1), all = sign | (sign - 1);
  if constexpr (kind == ST_BOOL) {
    return key != 0;
  } else if constexpr (kind == ST_INT) {
    return (T)(typename st_traits<T>::as_unsigned)(st_traits<T>::is_signed ? key ^ sign : key);
  } else if constexpr (kind == ST_FLOAT) {
    if (key == all) return st_nan_of((T)0);
    return float_of_bits(key & sign ? key ^ sign : key ^ all, (const T*)nullptr);
  } else if constexpr (kind == ST_HALF) {
    if (key == all) return st_half_of(st_nan_of(0.0f), (const T*)nullptr);
    return T{(st_u16)(key & sign ? key ^ sign : key ^ all)};
  } else {
    return T();
  }
}

ST_FN int shift_of(int digit) { return (kDigits - 1 - digit) * kDigitBits; }
ST_FN int digit_of(st_u64 key, int digit) { return (int)(key >> shift_of(digit)) & (kBins - 1); }
ST_FN st_u64 prefix_of(st_u64 key, int digit) {
  return digit == 0 ? 0 : key >> shift_of(digit - 1);
}
ST_FN st_u64 key_at(const Launch& launch, const char* row, st_i64 i) {
  return key_of(st_load<T0>(row + i * launch.operand0.own_strides[0]));
}

// One rank's search: the digits found, and its rank among the elements that begin with them.
struct Seek {
  st_u64 prefix, left;
};
ST_FN Seek begin_seek(const Launch& launch, st_i64 number, int j) {
  return Seek{0, (st_u64)rank_of(launch, number, j)};
}
// The different prefixes; ranks that share one count together.
struct Wanted {
  int num, slots[kMostRanks];
  st_u64 prefixes[kMostRanks];
};
ST_FN void find_wanted(const Seek* seeks, int count, Wanted* wanted) {
  wanted->num = 0;
  for (int j = 0; j < count; ++j) {
    int k = 0;
    while (k < wanted->num && wanted->prefixes[k] != seeks[j].prefix) ++k;
    if (k == wanted->num) wanted->prefixes[wanted->num++] = seeks[j].prefix;
    wanted->slots[j] = k;
  }
}

#if ST_CUDA
ST_FN void add_one(st_u32* at) { atomicAdd(at, 1u); }
#else
ST_FN void add_one(st_u32* at) { ++*at; }
#endif

#if !ST_CUDA
// As below. Few elements begin with the digits found, so that most blocks are left at once.
ST_CALL void count_blocks(const Launch& launch, const char* row, st_i64 begin, st_i64 end,
                          int digit, const Wanted& wanted, st_u32* counts) {
  alignas(64) RadixKey keys[kKeyBlock];
  const st_i64 step = launch.operand0.own_strides[0];
  const int num = wanted.num;
  // Neighbours are often equal: two tables do not wait for each other.
  st_u32 odd[kBins];
  for (int i = 0; i < num * kBins; ++i) counts[i] = 0;
  for (int i = 0; i < kBins && digit == 0; ++i) odd[i] = 0;
  for (st_i64 i = begin; i < end; i += kKeyBlock) {
    const int some = end - i < kKeyBlock ? (int)(end - i) : kKeyBlock;
    read_keys(row + i * step, step, some, keys);
    if (digit == 0) {
      int j = 0;
      for (; j + 2 <= some; j += 2) {
        ++counts[digit_of(keys[j], 0)];
        ++odd[digit_of(keys[j + 1], 0)];
      }
      if (j < some) ++counts[digit_of(keys[j], 0)];
      continue;
    }
    const int shift = shift_of(digit - 1);
    for (int k = 0; k < num; ++k) {
      const RadixKey prefix = (RadixKey)wanted.prefixes[k];
      int matches = 0;
      for (int j = 0; j < some; ++j) matches += keys[j] >> shift == prefix;
      if (matches == 0) continue;
      for (int j = 0; j < some; ++j) {
        if (keys[j] >> shift == prefix) ++counts[k * kBins + digit_of(keys[j], digit)];
      }
    }
  }
  for (int i = 0; i < kBins && digit == 0; ++i) counts[i] += odd[i];
}
#endif
// The elements [begin, end) by their next digit, kBins counts for each prefix. A block's.
ST_FN void count_digits(const Launch& launch, const char* row, st_i64 begin, st_i64 end, int digit,
                        const Wanted& wanted, st_u32* counts) {
#if !ST_CUDA
  count_blocks(launch, row, begin, end, digit, wanted, counts);
  return;
#endif
  const int num = wanted.num;
  for (int i = ST_THREAD; i < num * kBins; i += ST_THREADS) counts[i] = 0;
  ST_SYNC();
  for (st_i64 i = begin + ST_THREAD; i < end; i += ST_THREADS) {
    const st_u64 key = key_at(launch, row, i), prefix = prefix_of(key, digit);
    const int bin = digit_of(key, digit);
    for (int k = 0; k < num; ++k) {
      if (wanted.prefixes[k] == prefix) add_one(counts + k * kBins + bin);
    }
  }
  ST_SYNC();
}

// Sums of neighbouring bins, so that a digit is found in few steps. A block's.
template <class Count>
ST_FN void sum_groups(const Count* counts, int num, st_u64* sums) {
  for (int i = ST_THREAD; i < num * kGroups; i += ST_THREADS) {
    st_u64 sum = 0;
    for (int bin = 0; bin < kGroupBins; ++bin) sum += counts[i * kGroupBins + bin];
    sums[i] = sum;
  }
  ST_SYNC();
}
// The digit at which more elements are counted than come before the wanted one.
template <class Count>
ST_FN Seek followed(Seek seek, const Count* counts, const st_u64* sums) {
  int group = 0;
  while (group < kGroups - 1 && sums[group] <= seek.left) seek.left -= sums[group++];
  int bin = group * kGroupBins;
  while (bin < kBins - 1 && counts[bin] <= seek.left) seek.left -= counts[bin++];
  return Seek{seek.prefix << kDigitBits | (st_u64)bin, seek.left};
}

// Between passes: each row's seeks, read from one half and written to the other, and its counts,
// which on the CPU device each chunk has of its own. After the last digit a seek's prefix is a key.
ST_FN Seek* seeks_of(const Launch& launch, st_i64 number, int half) {
  return (Seek*)launch.scratch + (half * launch.count + number) * num_ranks(launch);
}
ST_FN st_u64* counts_of(const Launch& launch, st_i64 number, int half) {
  const st_i64 rows = ST_CUDA ? 1 : launch.pass[1];
  return (st_u64*)seeks_of(launch, 0, 2) +
         (half * launch.count + number) * rows * num_ranks(launch) * kBins;
}

#if ST_VECTORS
// A row's wanted keys by parting all of them. pass[3]: where in the scratch memory rows have room;
// short rows do without.
constexpr st_i64 kStackKeys = 8192;  // as kKeyedOnStack in routine_shape.cc
ST_CALL ST_512 void seek_keys(const Launch& launch, st_i64 item, RadixKey* a, RadixKey* b) {
  const st_i64 n = launch.operand0.own_extents[0];
  const int num = num_ranks(launch);
  st_i64 ranks[kMostRanks];
  for (int j = 0; j < num; ++j) ranks[j] = rank_of(launch, item, j);
  read_keys(row_of(launch, item).in, launch.operand0.own_strides[0], n, a);
  sort_wanted(a, b, n, [&](st_i64 begin, st_i64 end) {
    bool any = false;
    for (int j = 0; j < num; ++j) any = any || (ranks[j] >= begin && ranks[j] < end);
    return any;
  });
  for (int j = 0; j < num; ++j) {
    seeks_of(launch, item, kDigits % 2)[j] = Seek{a[ranks[j]], 0};
    found(launch, item, j, value_of<T0>(a[ranks[j]]));
  }
}
ST_CALL ST_512 void seek_on_stack(const Launch& launch, st_i64 item) {
  alignas(64) RadixKey a[kStackKeys], b[kStackKeys];
  seek_keys(launch, item, a, b);
}
ST_FN bool seek_in_vectors(const Launch& launch, st_i64 item) {
  const st_i64 n = launch.operand0.own_extents[0];
  if (n <= kStackKeys) {
    seek_on_stack(launch, item);
  } else if (launch.pass[3] != 0) {
    RadixKey* const a = (RadixKey*)(launch.scratch + launch.pass[3]) + 2 * item * n;
    seek_keys(launch, item, a, a + n);
  } else {
    return false;
  }
  return true;
}
#endif

ST_FN void phase3(const Launch& launch, st_i64 item) {
#if ST_VECTORS
  if (seek_in_vectors(launch, item)) return;
#endif
  ST_SHARED Seek seeks[kMostRanks];
  ST_SHARED Wanted wanted;
  ST_SHARED st_u32 counts[kMostRanks * kBins];
  ST_SHARED st_u64 sums[kMostRanks * kGroups];
  const int num = num_ranks(launch);
  const char* const row = row_of(launch, item).in;
  for (int j = ST_THREAD; j < num; j += ST_THREADS) seeks[j] = begin_seek(launch, item, j);
  for (int digit = 0; digit < kDigits; ++digit) {
    ST_SYNC();
    if (ST_THREAD == 0) find_wanted(seeks, num, &wanted);
    ST_SYNC();
    count_digits(launch, row, 0, launch.operand0.own_extents[0], digit, wanted, counts);
    sum_groups(counts, wanted.num, sums);
    for (int j = ST_THREAD; j < num; j += ST_THREADS) {
      const int k = wanted.slots[j];
      seeks[j] = followed(seeks[j], counts + k * kBins, sums + k * kGroups);
    }
  }
  for (int j = ST_THREAD; j < num; j += ST_THREADS) {
    seeks_of(launch, item, kDigits % 2)[j] = seeks[j];
    found(launch, item, j, value_of<T0>(seeks[j].prefix));
  }
  ST_SYNC();
}

ST_FN void phase4(const Launch& launch, st_i64 item) {
  const int num = num_ranks(launch);
  if (item < launch.count * num)
    seeks_of(launch, 0, 0)[item] = begin_seek(launch, item / num, (int)(item % num));
#if ST_CUDA
  counts_of(launch, 0, 0)[item] = 0;
#endif
}

ST_FN void phase5(const Launch& launch, st_i64 item) {
  ST_SHARED Wanted wanted;
  ST_SHARED st_u32 counts[kMostRanks * kBins];
  const int digit = (int)launch.pass[2], half = digit % 2;
  const st_i64 number = item / launch.pass[1], chunk = item % launch.pass[1];
  const st_i64 n = launch.operand0.own_extents[0], begin = chunk * launch.pass[0];
  const st_i64 end = begin + launch.pass[0] < n ? begin + launch.pass[0] : n;
  if (ST_THREAD == 0) find_wanted(seeks_of(launch, number, half), num_ranks(launch), &wanted);
  ST_SYNC();
  count_digits(launch, row_of(launch, number).in, begin, end, digit, wanted, counts);
  st_u64* const to = counts_of(launch, number, half);
  for (int i = ST_THREAD; i < wanted.num * kBins; i += ST_THREADS) {
#if ST_CUDA
    if (counts[i] != 0) atomicAdd(to + i, (st_u64)counts[i]);
#else
    to[chunk * num_ranks(launch) * kBins + i] = counts[i];
#endif
  }
  ST_SYNC();
}

ST_FN void phase6(const Launch& launch, st_i64 item) {
  ST_SHARED Wanted wanted;
  ST_SHARED st_u64 totals[kBins], sums[kGroups];
  const int num = num_ranks(launch), digit = (int)launch.pass[2], half = digit % 2;
  const Seek* const from = seeks_of(launch, item, half);
  Seek* const to = seeks_of(launch, item, 1 - half);
  if (ST_THREAD == 0) find_wanted(from, num, &wanted);
  ST_SYNC();
  const st_u64* const counts = counts_of(launch, item, half);
  for (int k = 0; k < wanted.num; ++k) {
    for (int bin = ST_THREAD; bin < kBins; bin += ST_THREADS) {
      st_u64 total = counts[k * kBins + bin];
      for (st_i64 chunk = 1; !ST_CUDA && chunk < launch.pass[1]; ++chunk)
        total += counts[(chunk * num + k) * kBins + bin];
      totals[bin] = total;
    }
    ST_SYNC();
    sum_groups(totals, 1, sums);
    for (int j = ST_THREAD; j < num; j += ST_THREADS) {
      if (wanted.slots[j] != k) continue;
      to[j] = followed(from[j], totals, sums);
      if (digit == kDigits - 1) found(launch, item, j, value_of<T0>(to[j].prefix));
    }
    ST_SYNC();
  }
#if ST_CUDA
  st_u64* const next = counts_of(launch, item, 1 - half);
  for (int i = ST_THREAD; i < num * kBins; i += ST_THREADS) next[i] = 0;
#endif
}
