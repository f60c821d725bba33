// The passes of seek.h on a processor. Memory between passes: each row's seeks, read from one half
// and written to the other, and the counts of each chunk.
ST_FN Seek* seeks_of(const Launch& launch, st_i64 number, int half) {
  return (Seek*)launch.scratch + (half * launch.count + number) * num_ranks(launch);
}
ST_FN st_u64* counts_of(const Launch& launch, st_i64 number, int half) {
  return (st_u64*)seeks_of(launch, 0, 2) +
         (half * launch.count + number) * launch.pass[1] * num_ranks(launch) * kBins;
}

constexpr int kGroups = 16, kGroupBins = kBins / kGroups;
// Counts the elements [begin, end) by their next digit, kBins counts per prefix. Few elements begin
// with the digits found, so most blocks are skipped.
ST_CALL void count_digits(const Launch& launch, const char* row, st_i64 begin, st_i64 end,
                          int digit, const Wanted& wanted, st_u32* counts) {
  alignas(64) RadixKey keys[kKeyBlock];
  const st_i64 step = launch.operand0.own_strides[0];
  const int num = wanted.num;
  // Neighbours are often equal: two tables avoid dependent updates.
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

// Sums of neighbouring bins, so that a digit is found in few steps.
template <class Count>
ST_FN void sum_groups(const Count* counts, int num, st_u64* sums) {
  for (int i = 0; i < num * kGroups; ++i) {
    st_u64 sum = 0;
    for (int bin = 0; bin < kGroupBins; ++bin) sum += counts[i * kGroupBins + bin];
    sums[i] = sum;
  }
}
// The digit whose cumulative count exceeds the wanted rank.
template <class Count>
ST_FN Seek followed(Seek seek, int digit, const Count* counts, const st_u64* sums) {
  int group = 0;
  while (group < kGroups - 1 && sums[group] <= seek.left) seek.left -= sums[group++];
  int bin = group * kGroupBins;
  while (bin < kBins - 1 && counts[bin] <= seek.left) seek.left -= counts[bin++];
  return Seek{seek.prefix << width_of(digit) | (st_u64)bin, seek.left};
}

#if ST_VECTORS
// A row's wanted keys, by partitioning all of them. pass[3]: offset of the rows' work memory in the
// scratch memory; short rows need none.
constexpr st_i64 kStackKeys = 8192;  // as kKeyedOnStack in order_shape.cc
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
  Seek seeks[kMostRanks];
  Wanted wanted;
  st_u32 counts[kMostRanks * kBins];
  st_u64 sums[kMostRanks * kGroups];
  const int num = num_ranks(launch);
  const char* const row = row_of(launch, item).in;
  for (int j = 0; j < num; ++j) seeks[j] = begin_seek(launch, item, j);
  for (int digit = 0; digit < kDigits; ++digit) {
    find_wanted(seeks, num, &wanted);
    count_digits(launch, row, 0, launch.operand0.own_extents[0], digit, wanted, counts);
    sum_groups(counts, wanted.num, sums);
    for (int j = 0; j < num; ++j) {
      const int k = wanted.slots[j];
      seeks[j] = followed(seeks[j], digit, counts + k * kBins, sums + k * kGroups);
    }
  }
  for (int j = 0; j < num; ++j) {
    seeks_of(launch, item, kDigits % 2)[j] = seeks[j];
    found(launch, item, j, value_of<T0>(seeks[j].prefix));
  }
}

ST_FN void phase4(const Launch& launch, st_i64 item) {
  const int num = num_ranks(launch);
  if (item < launch.count * num)
    seeks_of(launch, 0, 0)[item] = begin_seek(launch, item / num, (int)(item % num));
}

ST_FN void phase5(const Launch& launch, st_i64 item) {
  Wanted wanted;
  st_u32 counts[kMostRanks * kBins];
  const int digit = (int)launch.pass[2], half = digit % 2;
  const st_i64 number = item / launch.pass[1], chunk = item % launch.pass[1];
  const st_i64 n = launch.operand0.own_extents[0], begin = chunk * launch.pass[0];
  const st_i64 end = begin + launch.pass[0] < n ? begin + launch.pass[0] : n;
  find_wanted(seeks_of(launch, number, half), num_ranks(launch), &wanted);
  count_digits(launch, row_of(launch, number).in, begin, end, digit, wanted, counts);
  st_u64* const to = counts_of(launch, number, half);
  for (int i = 0; i < wanted.num * kBins; ++i)
    to[chunk * num_ranks(launch) * kBins + i] = counts[i];
}

ST_FN void phase6(const Launch& launch, st_i64 item) {
  Wanted wanted;
  st_u64 totals[kBins], sums[kGroups];
  const int num = num_ranks(launch), digit = (int)launch.pass[2], half = digit % 2;
  const Seek* const from = seeks_of(launch, item, half);
  Seek* const to = seeks_of(launch, item, 1 - half);
  find_wanted(from, num, &wanted);
  const st_u64* const counts = counts_of(launch, item, half);
  for (int k = 0; k < wanted.num; ++k) {
    for (int bin = 0; bin < kBins; ++bin) {
      st_u64 total = counts[k * kBins + bin];
      for (st_i64 chunk = 1; chunk < launch.pass[1]; ++chunk)
        total += counts[(chunk * num + k) * kBins + bin];
      totals[bin] = total;
    }
    sum_groups(totals, 1, sums);
    for (int j = 0; j < num; ++j) {
      if (wanted.slots[j] != k) continue;
      to[j] = followed(from[j], digit, totals, sums);
      if (digit == kDigits - 1) found(launch, item, j, value_of<T0>(to[j].prefix));
    }
  }
}
