// compress.h on a GPU. Passes: 0 clears what tiles publish; 1 counts, so that nothing is written
// where the count is wrong; 2 goes through the tiles: each takes the count before it from what the
// tiles before publish (look-back; counts are whole numbers, so the result is the same whichever
// they take it from), and moves the elements; where these are rows, it lists them in the scratch
// memory and 3 copies them. pass[1]: tiles. Scratch: a ticket, the count of all, what tiles
// publish, the list.
constexpr int kItems = 16, kTile = kItems * ST_THREADS, kWarps = ST_THREADS / 32;

ST_FN st_i64* list_of(const Launch& launch) { return (st_i64*)launch.scratch + 2 + launch.pass[1]; }

ST_FN void phase0(const Launch& launch, st_i64 item) { ((st_u64*)launch.scratch)[item] = 0; }

ST_FN void phase1(const Launch& launch, st_i64 item) {
  __shared__ st_u32 counts[kWarps];
  const st_i64 n = st_own_count(launch.operand0), first = item * kTile + ST_THREAD;
  st_u32 count = 0;
#pragma unroll
  for (int k = 0; k < kItems; ++k) {
    const st_i64 i = first + k * ST_THREADS;
    count += (st_u32)__popc(__ballot_sync(~0u, i < n && is_set(launch, i)));
  }
  if (ST_THREAD % 32 == 0) counts[ST_THREAD / 32] = count;
  ST_SYNC();
  if (ST_THREAD != 0) return;
  for (int warp = 1; warp < kWarps; ++warp) count += counts[warp];
  if (count != 0) atomicAdd((st_u64*)launch.scratch + 1, (st_u64)count);
}

// The count of the tiles before. A warp's: it reads 32 of them at once.
ST_FN st_u64 count_before(volatile st_u64* published, st_i64 tile, st_u64 count) {
  constexpr st_u64 kThere = (st_u64)1 << 62, kSummed = (st_u64)1 << 63;
  const int lane = ST_THREAD % 32;
  if (lane == 0) published[tile] = kThere | (tile == 0 ? kSummed : 0) | count;
  if (tile == 0) return 0;
  st_u64 sum = 0;
  for (st_i64 last = tile - 1;; last -= 32) {
    st_u64 word = kThere | kSummed;
    if (last >= lane) {
      do word = published[last - lane];
      while (word == 0);
    }
    const st_u32 summed = __ballot_sync(~0u, (word & kSummed) != 0);
    const bool counts = summed == 0 || lane < __ffs((int)summed);
    st_u64 some = counts ? word & (kThere - 1) : 0;
#pragma unroll
    for (int step = 16; step > 0; step /= 2) some += __shfl_xor_sync(~0u, some, step);
    sum += some;
    if (summed != 0) break;
  }
  if (lane == 0) published[tile] = kThere | kSummed | (sum + count);
  return sum;
}

template <bool kValues>
ST_FN T1 element_of(const Launch& launch, st_i64 number) {
  if constexpr (kValues) {
    return st_load<T1>(launch.operand1.data + st_own_offset(launch.operand1, number));
  } else {
    return T1();
  }
}
template <bool kValues>
ST_FN void move(const Launch& launch, st_i64 number, T1 value, st_i64 to) {
  if constexpr (kValues) {
    if (launch.count == 1) {
      st_store<TLast>(launch.ST_LAST.data + to * launch.ST_LAST.own_strides[0],
                      st_convert<TLast>(value));
      return;
    }
  }
  list(launch, list_of(launch), number, to);
}

ST_FN void phase2(const Launch& launch, st_i64) {
  __shared__ st_u32 counts[ST_THREADS], sums[kWarps], ticket;
  __shared__ st_u64 before;
  const int warp = ST_THREAD / 32, lane = ST_THREAD % 32;
  const st_i64 all = ((const st_i64*)launch.scratch)[1], expected = launch.ST_LAST.own_extents[0];
  if (all != expected) {
    if (ST_THREAD == 0) st_note_fault(launch, kWrongCount, all, expected);
    return;
  }
  // Tiles are taken in their order, so that those before are done or have blocks that run.
  if (ST_THREAD == 0) ticket = atomicAdd((st_u32*)launch.scratch, 1u);
  counts[ST_THREAD] = 0;
  ST_SYNC();
  const st_i64 tile = ticket, n = st_own_count(launch.operand0);
  const st_i64 first = tile * kTile + ST_THREAD;
  bool set[kItems];
#pragma unroll
  for (int k = 0; k < kItems; ++k) {
    const st_i64 i = first + k * ST_THREADS;
    set[k] = i < n && is_set(launch, i);
  }
  T1 values[kItems];
#pragma unroll
  for (int k = 0; k < kItems; ++k) {
    if (!kIndices && launch.count == 1 && set[k])
      values[k] = element_of<!kIndices>(launch, first + k * ST_THREADS);
  }
  st_u32 places[kItems];
#pragma unroll
  for (int k = 0; k < kItems; ++k) {
    const st_u32 lanes = __ballot_sync(~0u, set[k]);
    places[k] = (st_u32)__popc(lanes & ((1u << lane) - 1));
    if (lane == 0) counts[k * kWarps + warp] = (st_u32)__popc(lanes);
  }
  ST_SYNC();
  const st_u32 count = counts[ST_THREAD];
  st_u32 sum = count;
#pragma unroll
  for (int step = 1; step < 32; step *= 2) {
    const st_u32 other = __shfl_up_sync(~0u, sum, step);
    if (lane >= step) sum += other;
  }
  if (lane == 31) sums[warp] = sum;
  ST_SYNC();
  st_u32 total = 0, start = sum - count;
#pragma unroll
  for (int i = 0; i < kWarps; ++i) {
    if (i == warp) start += total;
    total += sums[i];
  }
  counts[ST_THREAD] = start;
  if (warp == 0) {
    const st_u64 found = count_before((volatile st_u64*)launch.scratch + 2, tile, total);
    if (lane == 0) before = found;
  }
  ST_SYNC();
#pragma unroll
  for (int k = 0; k < kItems; ++k) {
    const st_i64 to = (st_i64)before + counts[k * kWarps + warp] + places[k];
    if (set[k]) move<!kIndices>(launch, first + k * ST_THREADS, values[k], to);
  }
}

ST_FN void phase3(const Launch& launch, st_i64 item) { copy_listed(launch, list_of(launch), item); }
