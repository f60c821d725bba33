// The passes of seek.h on a GPU. Once few elements of a row begin with the digits found, a counting
// pass also collects them in the scratch memory, and later passes read only these. For the first k
// elements (top.h) it collects all elements up to them.
constexpr int kWarps = ST_THREADS / 32;
constexpr int kCounters = kMostRanks * kBins > (1 << kFirstBits) ? kMostRanks* kBins
                                                                 : 1 << kFirstBits;

// State between passes, from seek_memory() on. Each row's seeks are read from one half and written
// to the other. Its counts are in halves too: one is cleared while the other is used. Then follow
// its state and the collected elements.
struct SeekState {
  st_u64 num_collected, num_found;  // collected elements; all elements that equal the last rank's
  st_u64 num_put;                   // used by top.h
  st_u64 source;
};
enum { kReadsInput, kCollects, kReadsCollected };
ST_FN st_i64 counts_of_row(const Launch& launch) {
  const st_i64 counts = (st_i64)num_ranks(launch) * kBins;
  return counts > (1 << kFirstBits) ? counts : 1 << kFirstBits;
}
ST_FN st_i64 room_of_row(const Launch& launch) { return launch.operand0.own_extents[0] / 4; }
ST_FN char* seek_memory(const Launch& launch) {
  // The elements that top.h finally sorts come first.
  const st_i64 first = kTop ? launch.count * launch.ST_LAST.own_extents[0] * sizeof(Entry) : 0;
  return launch.scratch + (first + 15) / 16 * 16;
}
ST_FN Seek* seeks_of(const Launch& launch, st_i64 number, int half) {
  return (Seek*)seek_memory(launch) + (half * launch.count + number) * num_ranks(launch);
}
ST_FN st_u64* counts_of(const Launch& launch, st_i64 number, int half) {
  return (st_u64*)seeks_of(launch, 0, 2) + (half * launch.count + number) * counts_of_row(launch);
}
ST_FN SeekState* state_of(const Launch& launch, st_i64 number) {
  return (SeekState*)counts_of(launch, 0, 2) + number;
}
ST_FN Entry* collected_of(const Launch& launch, st_i64 number) {
  char* const all = (char*)(state_of(launch, launch.count));
  return (Entry*)all + number * room_of_row(launch);
}

// Both zeros have one key where positions order equal elements.
ST_FN RadixKey seek_key(T0 x) {
  if constexpr (kTop) {
    return radix_key(x, kDescending);
  } else {
    return (RadixKey)key_of(x);
  }
}

// Appends the entries with set bits, in any order. Called by a block; `shared` is 0 before and
// after.
struct Appending {
  st_u32 count;
  st_u64 base;
};
template <int kAtOnce>
ST_FN void append(Entry* list, st_u64* num, st_i64 room, const Entry* entries, st_u32 bits,
                  Appending* shared) {
  if (!__syncthreads_or(bits != 0)) return;
  const int lane = ST_THREAD % 32;
  st_u32 all = 0, place = 0;
#pragma unroll
  for (int k = 0; k < kAtOnce; ++k) all += (st_u32)__popc(__ballot_sync(~0u, bits >> k & 1));
  if (lane == 0 && all != 0) place = atomicAdd(&shared->count, all);
  place = __shfl_sync(~0u, place, 0);
  ST_SYNC();
  if (ST_THREAD == 0) {
    shared->base = atomicAdd(num, (st_u64)shared->count);
    shared->count = 0;
  }
  ST_SYNC();
#pragma unroll
  for (int k = 0; k < kAtOnce; ++k) {
    const st_u32 lanes = __ballot_sync(~0u, bits >> k & 1);
    const st_i64 to = (st_i64)shared->base + place + __popc(lanes & ((1u << lane) - 1));
    // The host may overwrite the input during the launch, so that more elements match than were
    // counted.
    if ((bits >> k & 1) && to < room) list[to] = entries[k];
    place += (st_u32)__popc(lanes);
  }
}

// Calls do_some(entries, bits of the valid ones) with elements [begin, end) of a row or of its
// collected elements, several per thread at once.
constexpr int kSoughtAtOnce = sizeof(Entry) > 8 ? 4 : 8;
template <class Do>
ST_FN void for_elements(const Launch& launch, const Row& row, const Entry* collected, st_i64 begin,
                        st_i64 end, const Do& do_some) {
  const st_i64 step = launch.operand0.own_strides[0];
  for (st_i64 first = begin; first < end; first += kSoughtAtOnce * ST_THREADS) {
    Entry entries[kSoughtAtOnce];
    st_u32 bits = 0;
#pragma unroll
    for (int k = 0; k < kSoughtAtOnce; ++k) {
      const st_i64 i = first + k * ST_THREADS + ST_THREAD;
      if (i >= end) continue;
      bits |= 1u << k;
      if (collected != nullptr) {
        entries[k] = collected[i];
      } else {
        entries[k].key = st_load<T0>(row.in + i * step);
        set_place(entries[k], i);
      }
    }
    do_some(entries, bits);
  }
}

// Counts the elements [begin, end) by their next digit, kBins counts per prefix, and collects those
// with a prefix. Called by a block.
enum { kFirstDigit, kCountsOnly, kCountsAndCollects };
template <int kHow>
ST_FN void count_digits(const Launch& launch, st_i64 number, const Entry* collected, st_i64 begin,
                        st_i64 end, int digit, const Wanted& wanted, st_u32* counts,
                        Appending* shared) {
  const Row row = row_of(launch, number);
  const int num = wanted.num, shift = shift_of(digit), mask = bins_of(digit) - 1;
  const int found_shift = kHow == kFirstDigit ? 0 : shift_of(digit - 1);
  for_elements(launch, row, collected, begin, end, [&](const Entry* entries, st_u32 bits) {
    st_u32 hits = 0;
#pragma unroll
    for (int k = 0; k < kSoughtAtOnce; ++k) {
      if (!(bits >> k & 1)) continue;
      const RadixKey key = seek_key(entries[k].key), prefix = key >> found_shift;
      const int bin = (int)(key >> shift) & mask;
      if constexpr (kHow == kFirstDigit) {
        atomicAdd(counts + bin, 1u);
      } else {
        for (int j = 0; j < num; ++j) {
          if ((RadixKey)wanted.prefixes[j] != prefix) continue;
          atomicAdd(counts + j * kBins + bin, 1u);
          hits |= 1u << k;
        }
        if (kTop && prefix < (RadixKey)wanted.prefixes[0]) hits |= 1u << k;
      }
    }
    if constexpr (kHow == kCountsAndCollects) {
      append<kSoughtAtOnce>(collected_of(launch, number), &state_of(launch, number)->num_collected,
                            room_of_row(launch), entries, hits, shared);
    }
  });
}

// Advances the seeks with prefix number k by its counts. chosen[j]: the number of elements with a
// seek's new prefix. Called by a block.
template <class Count>
ST_FN void follow(const Seek* from, Seek* to, int num, const Wanted& wanted, int k, int digit,
                  const Count* counts, st_u64* chosen, st_u64* sums) {
  const int bins = bins_of(digit), own = (bins + ST_THREADS - 1) / ST_THREADS;
  const int first = ST_THREAD * own, lane = ST_THREAD % 32;
  st_u64 count = 0;
  for (int i = first; i < first + own && i < bins; ++i) count += counts[i];
  st_u64 sum = count;
#pragma unroll
  for (int step = 1; step < 32; step *= 2) {
    const st_u64 other = __shfl_up_sync(~0u, sum, step);
    if (lane >= step) sum += other;
  }
  if (lane == 31) sums[ST_THREAD / 32] = sum;
  ST_SYNC();
  st_u64 before = sum - count;
  for (int warp = 0; warp < ST_THREAD / 32; ++warp) before += sums[warp];
  for (int j = 0; j < num; ++j) {
    const Seek seek = from[j];
    if (wanted.slots[j] != k || seek.left < before || seek.left >= before + count) continue;
    st_u64 left = seek.left - before;
    int bin = first;
    while (left >= counts[bin]) left -= counts[bin++];
    to[j] = Seek{seek.prefix << width_of(digit) | (st_u64)bin, left};
    chosen[j] = counts[bin];
  }
  ST_SYNC();
}

ST_FN void seek_row(const Launch& launch, st_i64 item) {
  __shared__ Seek seeks[2][kMostRanks];
  __shared__ Wanted wanted;
  __shared__ st_u32 counts[kCounters];
  __shared__ st_u64 chosen[kMostRanks], sums[kWarps];
  const int num = num_ranks(launch);
  for (int j = ST_THREAD; j < num; j += ST_THREADS) seeks[0][j] = begin_seek(launch, item, j);
  for (int digit = 0; digit < kDigits; ++digit) {
    const Seek* const from = seeks[digit % 2];
    Seek* const to = seeks[1 - digit % 2];
    ST_SYNC();
    if (ST_THREAD == 0) find_wanted(from, num, &wanted);
    for (int i = ST_THREAD; i < kCounters; i += ST_THREADS) counts[i] = 0;
    ST_SYNC();
    const st_i64 n = launch.operand0.own_extents[0];
    if (digit == 0) {
      count_digits<kFirstDigit>(launch, item, nullptr, 0, n, digit, wanted, counts, nullptr);
    } else {
      count_digits<kCountsOnly>(launch, item, nullptr, 0, n, digit, wanted, counts, nullptr);
    }
    ST_SYNC();
    for (int k = 0; k < wanted.num; ++k)
      follow(from, to, num, wanted, k, digit, counts + k * kBins, chosen, sums);
  }
  for (int j = ST_THREAD; j < num; j += ST_THREADS) {
    const Seek seek = seeks[kDigits % 2][j];
    seeks_of(launch, item, kDigits % 2)[j] = seek;
    found(launch, item, j, value_of<T0>(seek.prefix));
  }
  ST_SYNC();
}

ST_FN void seek_begin(const Launch& launch, st_i64 item) {
  const int num = num_ranks(launch);
  if (item < launch.count * num)
    seeks_of(launch, 0, 0)[item] = begin_seek(launch, item / num, (int)(item % num));
  if (item < launch.count) *state_of(launch, item) = SeekState{0, 0, 0, kReadsInput};
  counts_of(launch, 0, 0)[item] = 0;
}

// The part of a row, or of its collected elements, that a block reads.
struct Chunk {
  st_i64 number, begin, end;
  const Entry* collected;
};
ST_FN Chunk chunk_of(const Launch& launch, st_i64 item) {
  Chunk chunk;
  chunk.number = item / launch.pass[1];
  const SeekState& state = *state_of(launch, chunk.number);
  const bool all = state.source != kReadsCollected;
  const st_i64 room = room_of_row(launch), some = (st_i64)state.num_collected;
  const st_i64 n = all ? launch.operand0.own_extents[0] : some < room ? some : room;
  const st_i64 size = all ? launch.pass[0] : (n / launch.pass[1] / ST_THREADS + 1) * ST_THREADS;
  chunk.begin = item % launch.pass[1] * size;
  chunk.end = chunk.begin + size < n ? chunk.begin + size : n;
  chunk.collected = all ? nullptr : collected_of(launch, chunk.number);
  return chunk;
}

ST_FN void seek_count(const Launch& launch, st_i64 item) {
  __shared__ Wanted wanted;
  __shared__ st_u32 counts[kCounters];
  __shared__ Appending appending;
  const int digit = (int)launch.pass[2], half = digit % 2;
  const Chunk chunk = chunk_of(launch, item);
  if (chunk.begin >= chunk.end) return;
  const st_i64 number = chunk.number;
  if (ST_THREAD == 0) {
    find_wanted(seeks_of(launch, number, half), num_ranks(launch), &wanted);
    appending.count = 0;
  }
  const int counters = (int)counts_of_row(launch);
  for (int i = ST_THREAD; i < counters; i += ST_THREADS) counts[i] = 0;
  ST_SYNC();
  if (digit == 0) {
    count_digits<kFirstDigit>(launch, number, nullptr, chunk.begin, chunk.end, digit, wanted,
                              counts, nullptr);
  } else if (state_of(launch, number)->source == kCollects) {
    count_digits<kCountsAndCollects>(launch, number, nullptr, chunk.begin, chunk.end, digit, wanted,
                                     counts, &appending);
  } else {
    count_digits<kCountsOnly>(launch, number, chunk.collected, chunk.begin, chunk.end, digit,
                              wanted, counts, nullptr);
  }
  ST_SYNC();
  st_u64* const to = counts_of(launch, number, half);
  for (int i = ST_THREAD; i < counters; i += ST_THREADS) {
    if (counts[i] != 0) atomicAdd(to + i, (st_u64)counts[i]);
  }
}

ST_FN void seek_choose(const Launch& launch, st_i64 item) {
  __shared__ Wanted wanted;
  __shared__ st_u64 chosen[kMostRanks], sums[kWarps];
  const int num = num_ranks(launch), digit = (int)launch.pass[2], half = digit % 2;
  const Seek* const from = seeks_of(launch, item, half);
  Seek* const to = seeks_of(launch, item, 1 - half);
  if (ST_THREAD == 0) find_wanted(from, num, &wanted);
  st_u64* const next = counts_of(launch, item, 1 - half);
  for (st_i64 i = ST_THREAD; i < counts_of_row(launch); i += ST_THREADS) next[i] = 0;
  ST_SYNC();
  const st_u64* const counts = counts_of(launch, item, half);
  for (int k = 0; k < wanted.num; ++k)
    follow(from, to, num, wanted, k, digit, counts + k * kBins, chosen, sums);
  if (digit == kDigits - 1) {
    for (int j = ST_THREAD; j < num; j += ST_THREADS)
      found(launch, item, j, value_of<T0>(to[j].prefix));
  }
  if (ST_THREAD != 0) return;
  // Number of elements that later digits need.
  st_u64 needed = kTop ? begin_seek(launch, item, 0).left - to[0].left : 0;
  for (int j = 0; j < num; ++j) {
    bool is_new = true;
    for (int i = 0; i < j; ++i) is_new = is_new && to[i].prefix != to[j].prefix;
    needed += is_new ? chosen[j] : 0;
  }
  SeekState& state = *state_of(launch, item);
  state.num_found = chosen[num - 1];
  if (state.source == kReadsInput) {
    if (needed <= (st_u64)room_of_row(launch)) state.source = kCollects;
  } else {
    state.source = kReadsCollected;
  }
}
