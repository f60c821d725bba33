// compress.h on a GPU. Pass 0 counts: a warp per tile, a block per pass[0] tiles; there are pass[1]
// tiles in all. Pass 1 processes the tiles: a block sums the counts of earlier ones, so that none
// waits for another, and moves the elements; if these are rows, it lists them in the scratch
// memory, and pass 2 copies them. Pass 1 knows the total count and writes nothing if that is wrong.
// Scratch: the tiles' counts, those of pass 0's blocks (at most kMostChunks), the list. pass[2]:
// bits for operands without gaps and in the order of their elements.
constexpr int kWarps = ST_THREADS / 32, kItems = 16, kTile = kItems * ST_THREADS;
constexpr int kTileWords = kTile / 32, kMostChunks = 2048;  // as in routine_shape.cc
constexpr st_i64 kFlatMask = 1, kFlatInput = 2;

struct alignas(16) MaskBytes {
  st_u32 words[4];
};

ST_FN st_u32* counts_of_tiles(const Launch& launch) { return (st_u32*)launch.scratch; }
ST_FN st_u32* counts_of_chunks(const Launch& launch) {
  return counts_of_tiles(launch) + launch.pass[1];
}
ST_FN st_i64* list_of(const Launch& launch) {
  return (st_i64*)launch.scratch + (launch.pass[1] + kMostChunks + 1) / 2;
}

// Whether the mask can be read by 16 bytes.
ST_FN bool reads_bytes(const Launch& launch) {
  return sizeof(T0) == 1 && (launch.pass[2] & kFlatMask) != 0 &&
         ((st_u64)launch.operand0.data & 15) == 0;
}
// A bit for each nonzero byte.
ST_FN st_u32 bits_of(const MaskBytes& bytes) {
  st_u32 bits = 0;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const st_u32 word = bytes.words[i];
    const st_u32 set = (((word & 0x7F7F7F7Fu) + 0x7F7F7F7Fu) | word) >> 7 & 0x01010101u;
    bits |= (set * 0x10204080u >> 28) << (4 * i);
  }
  return bits;
}
// The bits of elements [first, first + 16).
ST_FN st_u32 bits_at(const Launch& launch, st_i64 first, st_i64 n) {
  if (first + 16 <= n) return bits_of(*(const MaskBytes*)(launch.operand0.data + first));
  st_u32 bits = 0;
  for (int i = 0; first + i < n; ++i) bits |= (st_u32)is_set(launch, first + i) << i;
  return bits;
}
ST_FN bool is_set_below(const Launch& launch, st_i64 i, st_i64 n) {
  return i < n && is_set(launch, i);
}

ST_FN void phase0(const Launch& launch, st_i64 item) {
  __shared__ st_u32 sums[kWarps];
  const int warp = ST_THREAD / 32, lane = ST_THREAD % 32;
  const st_i64 n = st_own_count(launch.operand0), tiles = launch.pass[1];
  const st_i64 first = item * launch.pass[0], last = first + launch.pass[0];
  const st_i64 end = last < tiles ? last : tiles;
  const bool by_bytes = reads_bytes(launch);
  st_u32 sum = 0;
  for (st_i64 tile = first + warp; tile < end; tile += kWarps) {
    const st_i64 begin = tile * kTile;
    st_u32 count = 0;
    if (by_bytes && begin + kTile <= n) {
      const MaskBytes* const from = (const MaskBytes*)(launch.operand0.data + begin) + lane;
      MaskBytes read[kTile / 512];
#pragma unroll
      for (int k = 0; k < kTile / 512; ++k) read[k] = from[k * 32];
#pragma unroll
      for (int k = 0; k < kTile / 512; ++k) count += (st_u32)__popc(bits_of(read[k]));
    } else {
#pragma unroll 8
      for (int k = 0; k < kTile / 32; ++k)
        count += is_set_below(launch, begin + k * 32 + lane, n) ? 1 : 0;
    }
#pragma unroll
    for (int step = 16; step > 0; step /= 2) count += __shfl_xor_sync(~0u, count, step);
    if (lane == 0) counts_of_tiles(launch)[tile] = count;
    sum += count;
  }
  if (lane == 0) sums[warp] = sum;
  ST_SYNC();
  if (ST_THREAD != 0) return;
#pragma unroll
  for (int i = 1; i < kWarps; ++i) sum += sums[i];
  counts_of_chunks(launch)[item] = sum;
}

// The sum of a warp.
ST_FN st_u64 sum_lanes(st_u64 value) {
#pragma unroll
  for (int step = 16; step > 0; step /= 2) value += __shfl_xor_sync(~0u, value, step);
  return value;
}

// Writes the tile's `count` elements to the output from `first` on. Several loads are in flight at
// once.
template <bool kFlat>
ST_FN void move(const Launch& launch, st_i64 begin, const st_u16* listed, int count, st_i64 first) {
  if constexpr (!kIndices) {
    constexpr int kAtOnce = sizeof(T1) > 8 ? 4 : 8;
    const auto& from = launch.operand1;
    const char* const data =
        from.data + (kFlat ? begin * (st_i64)sizeof(typename st_stored<T1>::type) : 0);
    const st_i64 step = launch.ST_LAST.own_strides[0];
    char* const to = launch.ST_LAST.data + first * step;
    for (int i = ST_THREAD; i < count; i += kAtOnce * ST_THREADS) {
      T1 values[kAtOnce];
#pragma unroll
      for (int k = 0; k < kAtOnce; ++k) {
        const int j = i + k * ST_THREADS;
        if (j >= count) break;
        values[k] = st_load<T1>(data + (kFlat ? listed[j] * sizeof(typename st_stored<T1>::type)
                                              : st_own_offset(from, begin + listed[j])));
      }
#pragma unroll
      for (int k = 0; k < kAtOnce; ++k) {
        const int j = i + k * ST_THREADS;
        if (j >= count) break;
        st_store<TLast>(to + j * step, st_convert<TLast>(values[k]));
      }
    }
  }
}

ST_FN void phase1(const Launch& launch, st_i64 tile) {
  __shared__ st_u32 words[kTileWords], starts[kTileWords], sums[kWarps];
  __shared__ st_u64 befores[kWarps], alls[kWarps];
  __shared__ st_u16 listed[kTile];
  const int warp = ST_THREAD / 32, lane = ST_THREAD % 32;
  const st_i64 n = st_own_count(launch.operand0), begin = tile * kTile;
  // A bit for each element.
  if (reads_bytes(launch)) {
    ((st_u16*)words)[ST_THREAD] = (st_u16)bits_at(launch, begin + ST_THREAD * 16, n);
  } else {
    bool set[kItems];
#pragma unroll
    for (int k = 0; k < kItems; ++k)
      set[k] = is_set_below(launch, begin + k * ST_THREADS + ST_THREAD, n);
#pragma unroll
    for (int k = 0; k < kItems; ++k) {
      const st_u32 lanes = __ballot_sync(~0u, set[k]);
      if (lane == 0) words[k * kWarps + warp] = lanes;
    }
  }
  // The counts before this tile, and the total.
  const st_u32 tiles = (st_u32)launch.pass[1], in_chunk = (st_u32)launch.pass[0];
  const st_u32 chunk = (st_u32)tile / in_chunk, chunks = (tiles + in_chunk - 1) / in_chunk;
  st_u64 before = 0, all = 0;
  for (st_u32 i = ST_THREAD; i < chunks; i += ST_THREADS) {
    const st_u32 count = counts_of_chunks(launch)[i];
    all += count;
    before += i < chunk ? count : 0;
  }
  for (st_u32 i = chunk * in_chunk + ST_THREAD; i < (st_u32)tile; i += ST_THREADS)
    before += counts_of_tiles(launch)[i];
  before = sum_lanes(before);
  all = sum_lanes(all);
  if (lane == 0) befores[warp] = before, alls[warp] = all;
  ST_SYNC();
  // Start of each half of a word in the tile.
  const st_u32 count = (st_u32)__popc(((const st_u16*)words)[ST_THREAD]);
  st_u32 sum = count;
#pragma unroll
  for (int step = 1; step < 32; step *= 2) {
    const st_u32 other = __shfl_up_sync(~0u, sum, step);
    if (lane >= step) sum += other;
  }
  if (lane == 31) sums[warp] = sum;
  ST_SYNC();
  st_u32 total = 0, start = sum - count;
  before = 0, all = 0;
#pragma unroll
  for (int i = 0; i < kWarps; ++i) {
    if (i == warp) start += total;
    total += sums[i];
    before += befores[i];
    all += alls[i];
  }
  const st_i64 expected = launch.ST_LAST.own_extents[0];
  if ((st_i64)all != expected) {
    if (ST_THREAD == 0) st_note_fault(launch, kWrongCount, (st_i64)all, expected);
    return;
  }
  if (ST_THREAD % 2 == 0) starts[ST_THREAD / 2] = start;
  ST_SYNC();
#pragma unroll
  for (int k = 0; k < kItems; ++k) {
    const int word = k * kWarps + warp;
    const st_u32 bits = words[word];
    if (bits >> lane & 1)
      listed[starts[word] + (st_u32)__popc(bits & ((1u << lane) - 1))] = (st_u16)(word * 32 + lane);
  }
  ST_SYNC();
  const st_i64 first = (st_i64)before;
  // The host may overwrite the mask during the launch, so that more elements match than were
  // counted.
  if (first >= expected) return;
  if (first + total > expected) total = (st_u32)(expected - first);
  if (!kIndices && launch.count == 1) {
    if ((launch.pass[2] & kFlatInput) != 0) {
      move<true>(launch, begin, listed, (int)total, first);
    } else {
      move<false>(launch, begin, listed, (int)total, first);
    }
    return;
  }
#pragma unroll 4
  for (int j = ST_THREAD; j < (int)total; j += ST_THREADS)
    list(launch, list_of(launch), begin + listed[j], first + j);
}

ST_FN void phase2(const Launch& launch, st_i64 item) { copy_listed(launch, list_of(launch), item); }
