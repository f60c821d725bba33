// accumulate.h's long rows on a GPU, in tiles that are read and written once. Pass 1 clears the
// published words. Pass 2 processes the tiles; a row has pass[1] of them. Each tile publishes its
// total. The last of each group of kGroup tiles publishes the group's total, and the last of each
// kGroup groups the row's prefix up to it. A tile combines that prefix, the totals of earlier
// groups in its group of groups, and the totals of earlier tiles in its group: a warp waits for
// each. So the order of combination depends only on positions, and results repeat, unlike a
// look-back to any tile with a result.

constexpr int kLane = 32, kWarps = ST_THREADS / kLane, kGroup = kLane;
// AccumulateTile() in routine_shape.cc, which does not know the accumulator's type.
constexpr int kItems = sizeof(T1) > 8 ? 4 : sizeof(T1) > 4 ? 8 : 16, kTile = kItems * ST_THREADS;
constexpr int kWords = ((int)sizeof(Acc) + 3) / 4;

// A value as words of 32 bits, each published with a mark, so that no fence is needed.
union Words {
  Acc value;
  st_u32 words[kWords];
};
ST_FN void publish(volatile st_u64* to, Acc value) {
  Words pieces = {};
  pieces.value = value;
#pragma unroll
  for (int i = 0; i < kWords; ++i) to[i] = (st_u64)1 << 32 | pieces.words[i];
}
ST_FN Acc await(const volatile st_u64* from) {
  Words pieces = {};
#pragma unroll
  for (int i = 0; i < kWords; ++i) {
    st_u64 word;
    do word = from[i];
    while (word == 0);
    pieces.words[i] = (st_u32)word;
  }
  return pieces.value;
}

// The part of the lane that is `lanes` lower.
ST_FN Part shifted(Part part, int lanes) {
  Words pieces = {};
  pieces.value = part.value;
#pragma unroll
  for (int i = 0; i < kWords; ++i) pieces.words[i] = __shfl_up_sync(~0u, pieces.words[i], lanes);
  return Part{pieces.value, __shfl_up_sync(~0u, (int)part.some, lanes) != 0};
}
// Inclusive prefix over a warp's lanes.
ST_FN Part combine_lanes(Part part) {
#pragma unroll
  for (int step = 1; step < kLane; step *= 2) {
    const Part other = shifted(part, step);
    if (ST_THREAD % kLane >= step) part = join(other, part);
  }
  return part;
}
// The exclusive prefix over threads, and the total. `warps` is shared by the block, and free once
// all threads have passed a barrier after this call.
ST_FN Part combine_threads(Part part, Part* total, Part* warps) {
  const int lane = ST_THREAD % kLane;
  part = combine_lanes(part);
  if (lane == kLane - 1) warps[ST_THREAD / kLane] = part;
  Part before = shifted(part, 1);
  if (lane == 0) before.some = false;
  ST_SYNC();
  Part sum;
  sum.some = false;
#pragma unroll
  for (int warp = 0; warp < kWarps; ++warp) {
    if (warp == ST_THREAD / kLane) before = join(sum, before);
    sum = join(sum, warps[warp]);
  }
  *total = sum;
  return before;
}

// Padding between runs, so that the threads' runs are in different banks.
constexpr int kBankValues = sizeof(Acc) >= 16 ? 8 : 128 / (int)sizeof(Acc);
ST_FN int padded(int i) { return i + i / kBankValues; }
// Distance of a thread's elements when threads take neighbouring elements.
constexpr int kHop = ST_THREADS + ST_THREADS / kBankValues;
static_assert(kBankValues % kItems == 0, "a thread's run has no gap");

ST_FN void phase1(const Launch& launch, st_i64 item) { ((st_u64*)launch.scratch)[item] = 0; }

ST_FN void phase2(const Launch& launch, st_i64 item) {
  __shared__ Acc values[kTile + kTile / kBankValues];
  __shared__ Part warps[kWarps], earlier[3];
  __shared__ st_u32 ticket;
  const st_i64 tiles = launch.pass[1];
  // Tiles are taken in order, so that earlier tiles have ended or belong to running blocks.
  if (tiles > 1) {
    if (ST_THREAD == 0) ticket = atomicAdd((st_u32*)launch.scratch, 1u);
    ST_SYNC();
    item = ticket;
  }
  // A ticket has 32 bits.
  const st_i64 number = (st_u32)item / (st_u32)tiles, tile = (st_u32)item % (st_u32)tiles;
  const st_i64 begin = tile * kTile;
  const Row row = row_of(launch, number);
  const int valid = row.n - begin < kTile ? (int)(row.n - begin) : kTile;
  if (ST_THREAD == 0 && tile == 0) store_initial(launch, row);
  Acc* const across = values + padded(ST_THREAD);
  const char* from = row.in + (begin + ST_THREAD) * row.in_step;
  T0 loaded[kItems];
#pragma unroll
  for (int k = 0; k < kItems; ++k) {
    if (k * ST_THREADS + ST_THREAD < valid) loaded[k] = st_load<T0>(from);
    from += ST_THREADS * row.in_step;
  }
#pragma unroll
  for (int k = 0; k < kItems; ++k) {
    const int i = k * ST_THREADS + ST_THREAD;
    if (i < valid) across[k * kHop] = run0(loaded[k]);
  }
  ST_SYNC();
  // A thread's own elements stay in shared memory, to save registers while it waits.
  const int own = valid - ST_THREAD * kItems;
  Acc* const run = values + padded(ST_THREAD * kItems);
  Part part;
  part.some = own > 0;
  if (part.some) part.value = run[0];
#pragma unroll
  for (int k = 1; k < kItems; ++k) {
    if (k < own) part.value = run1(part.value, run[k]);
  }
  Part total;
  Part before = combine_threads(part, &total, warps);

  if (tiles > 1) {
    const st_i64 groups = (tiles + kGroup - 1) / kGroup, outers = (groups + kGroup - 1) / kGroup;
    const st_i64 group = tile / kGroup, outer = group / kGroup;
    const int place = (int)(tile % kGroup), outer_place = (int)(group % kGroup);
    volatile st_u64* const totals =
        (volatile st_u64*)launch.scratch + 1 + number * (tiles + groups + outers) * kWords;
    volatile st_u64* const sums = totals + tiles * kWords;
    volatile st_u64* const ends = sums + groups * kWords;
    const int lane = ST_THREAD % kLane, warp = ST_THREAD / kLane;
    if (ST_THREAD == 0) publish(totals + tile * kWords, total.value);
    if (warp == 0) {
      Part part;
      part.some = lane < place;
      if (part.some) part.value = await(totals + (tile - place + lane) * kWords);
      part = combine_lanes(part);
      if (lane == kLane - 1) {
        earlier[2] = part;
        if (place == kGroup - 1) publish(sums + group * kWords, join(part, total).value);
      }
    } else if (warp == 1) {
      Part part;
      part.some = lane < outer_place;
      if (part.some) part.value = await(sums + (group - outer_place + lane) * kWords);
      part = combine_lanes(part);
      if (lane == kLane - 1) earlier[1] = part;
    } else if (ST_THREAD == 2 * kLane) {
      earlier[0].some = outer > 0;
      if (outer > 0) earlier[0].value = await(ends + (outer - 1) * kWords);
    }
    ST_SYNC();
    const Part sum = join(join(earlier[0], earlier[1]), earlier[2]);
    if (ST_THREAD == 0 && place == kGroup - 1 && outer_place == kGroup - 1)
      publish(ends + outer * kWords, join(sum, total).value);
    before = join(sum, before);
  }

  if (own > 0) before = join(before, Part{run[0], true});
  if (own > 0) run[0] = before.value;
#pragma unroll
  for (int k = 1; k < kItems; ++k) {
    if (k < own) {
      before.value = run1(before.value, run[k]);
      run[k] = before.value;
    }
  }
  ST_SYNC();
  char* to = row.out + (begin + ST_THREAD) * row.out_step;
#pragma unroll
  for (int k = 0; k < kItems; ++k) {
    const int i = k * ST_THREADS + ST_THREAD;
    if (i < valid) st_store<T1>(to, run2(across[k * kHop]));
    to += ST_THREADS * row.out_step;
  }
}
