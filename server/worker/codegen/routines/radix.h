// A stable radix sort of rows on a GPU: one pass per digit of 8 bits, from the lowest. A tile sums
// the counts that earlier tiles have published (decoupled look-back), so that a pass reads and
// writes each element once. A digit that is equal in all elements of a row is skipped. The user of
// this text defines before it
//   RadixItem                           the type of moved items
//   kRadixItems                         items per thread
//   kRadixPlaces                        each item's index in the row is moved with it
//   kRadixKeeps                         the count saves the items that it reads: reads are costly
//   kRadixPut                           the result has the items; with places it may omit them
//   radix_digit(launch, item, digit)    in [0, 256)
//   radix_rows(launch), radix_length(launch), RadixRow, radix_row(launch, number)
//   radix_read(launch, row, i)          the row's item i
//   radix_put(launch, row, i, item), radix_put_place(launch, row, i, place)
//                                       item i of the result
// The emitter numbers the phases: clear, count (an item per part of pass[0] elements; a row has
// pass[1] parts), plan (an item per row), and for each digit a pass, pass[0] (an item per tile; a
// row has pass[1] tiles). pass[2]: offset in the scratch memory; pass[3]: number of digits.

constexpr int kRadixBins = 256, kRadixWarps = ST_THREADS / 32;
constexpr int kRadixItemBytes = (int)sizeof(RadixItem);
constexpr int kRadixTile = kRadixItems * ST_THREADS;
constexpr int kRadixMostDigits = 8;
constexpr st_u32 kRadixSkipped = 0xFFFFFFFFu;

// The scratch memory: rows' plans; up to two halves of items and of places; the items saved by the
// count. Then the cleared part: counts, a ticket per digit, and the words that tiles publish, one
// per digit value.
struct RadixPlan {
  // position of each digit among the passes that move, or kRadixSkipped
  st_u32 turns[kRadixMostDigits];
  st_u32 num_turns, unused[7];
};
struct RadixMemory {
  RadixPlan* plans;
  char *items, *places, *read;
  st_u32 *counts, *tickets;
  st_u64* published;
  st_i64 half;  // number of elements
};
ST_FN RadixMemory radix_memory(const Launch& launch) {
  const st_i64 rows = radix_rows(launch), digits = launch.pass[3];
  const st_i64 halves = digits > 2 ? 2 : digits - 1;
  RadixMemory memory;
  memory.half = rows * radix_length(launch);
  memory.plans = (RadixPlan*)(launch.scratch + launch.pass[2]);
  memory.items = (char*)(memory.plans + rows);
  memory.places = memory.items + (halves * memory.half * kRadixItemBytes + 15) / 16 * 16;
  const st_i64 places = kRadixPlaces ? halves * memory.half * (st_i64)sizeof(Index) : 0;
  memory.read = memory.places + (places + 15) / 16 * 16;
  const st_i64 read = kRadixKeeps ? memory.half * kRadixItemBytes : 0;
  memory.counts = (st_u32*)(memory.read + (read + 15) / 16 * 16);
  memory.tickets = memory.counts + rows * digits * kRadixBins;
  memory.published = (st_u64*)(memory.tickets + 16);
  return memory;
}

ST_FN void radix_clear(const Launch& launch, st_i64 item) {
  ((st_u64*)radix_memory(launch).counts)[item] = 0;
}

// Neighbouring lanes use separate counters, since neighbouring elements are often equal.
ST_FN void radix_count(const Launch& launch, st_i64 item) {
  constexpr int kApart = 4;
  __shared__ st_u32 counts[kRadixMostDigits / 2][kRadixBins][kApart];
  const int digits = (int)launch.pass[3];
  const st_i64 number = item / launch.pass[1], n = radix_length(launch);
  const st_i64 begin = item % launch.pass[1] * launch.pass[0];
  const st_i64 end = begin + launch.pass[0] < n ? begin + launch.pass[0] : n;
  const RadixRow row = radix_row(launch, number);
  const RadixMemory memory = radix_memory(launch);
  st_u32* const to = memory.counts + number * digits * kRadixBins;
  RadixItem* const kept = (RadixItem*)memory.read + number * n;
  for (int first = 0; first < digits; first += kRadixMostDigits / 2) {
    const int some = digits - first < kRadixMostDigits / 2 ? digits - first : kRadixMostDigits / 2;
    for (int i = ST_THREAD; i < some * kRadixBins * kApart; i += ST_THREADS)
      (&counts[0][0][0])[i] = 0;
    ST_SYNC();
#pragma unroll 4
    for (st_i64 i = begin + ST_THREAD; i < end; i += ST_THREADS) {
      const RadixItem value = radix_read(launch, row, i);
      if (kRadixKeeps) kept[i] = value;
#pragma unroll
      for (int k = 0; k < kRadixMostDigits / 2; ++k) {
        if (k < some)
          atomicAdd(&counts[k][radix_digit(launch, value, first + k)][ST_THREAD % kApart], 1u);
      }
    }
    ST_SYNC();
    for (int i = ST_THREAD; i < some * kRadixBins; i += ST_THREADS) {
      const st_u32* const apart = counts[i / kRadixBins][i % kRadixBins];
      const st_u32 sum = apart[0] + apart[1] + apart[2] + apart[3];
      if (sum != 0) atomicAdd(to + first * kRadixBins + i, sum);
    }
    ST_SYNC();
  }
}

// The sum of the preceding threads' values. `sums` is shared by the block.
ST_FN st_u32 radix_sum_before(st_u32 value, st_u32* sums) {
  const int lane = ST_THREAD % 32;
  st_u32 sum = value;
#pragma unroll
  for (int step = 1; step < 32; step *= 2) {
    const st_u32 other = __shfl_up_sync(~0u, sum, step);
    if (lane >= step) sum += other;
  }
  if (lane == 31) sums[ST_THREAD / 32] = sum;
  ST_SYNC();
  st_u32 before = sum - value;
  for (int warp = 0; warp < ST_THREAD / 32; ++warp) before += sums[warp];
  return before;
}

// Computes where each digit's items begin, and which digits move.
ST_FN void radix_plan(const Launch& launch, st_i64 item) {
  __shared__ st_u32 sums[kRadixWarps];
  const int digits = (int)launch.pass[3];
  const st_u32 n = (st_u32)radix_length(launch);
  const RadixMemory memory = radix_memory(launch);
  st_u32* const counts = memory.counts + item * digits * kRadixBins;
  st_u32 turn = 0;
  for (int digit = 0; digit < digits; ++digit) {
    const st_u32 count = counts[digit * kRadixBins + ST_THREAD];
    // At least one pass must run.
    const bool needless = __syncthreads_or(count == n) && (digit < digits - 1 || turn > 0);
    counts[digit * kRadixBins + ST_THREAD] = radix_sum_before(count, sums);
    if (ST_THREAD == 0) memory.plans[item].turns[digit] = needless ? kRadixSkipped : turn;
    if (!needless) ++turn;
    ST_SYNC();
  }
  if (ST_THREAD == 0) memory.plans[item].num_turns = turn;
}

// The lanes with the same digit.
ST_FN st_u32 radix_peers(int digit) {
  st_u32 peers = ~0u;
#pragma unroll
  for (int bit = 0; bit < 8; ++bit) {
    const bool set = (digit >> bit & 1) != 0;
    const st_u32 with = __ballot_sync(~0u, set);
    peers &= set ? with : ~with;
  }
  return peers;
}

// For each digit value a tile publishes its count, or the sum up to and including it. The digit's
// number marks the word, so that words of an earlier pass are ignored.
constexpr int kRadixMarkShift = 48;
constexpr st_u64 kRadixSummed = (st_u64)1 << kRadixMarkShift;
ST_FN st_u64 radix_mark(int digit) { return (st_u64)(2 * digit + 2) << kRadixMarkShift; }
ST_FN void radix_publish(volatile st_u64* published, st_i64 tile, int digit, st_u32 count) {
  published[tile * kRadixBins] = (radix_mark(digit) | (tile == 0 ? kRadixSummed : 0)) + count;
}
// The number of items with this digit in earlier tiles. Called per thread, each for one digit
// value. It reads several tiles' words at once, since sequential reads would dominate the run time.
ST_FN st_u64 radix_look_back(volatile st_u64* published, st_i64 tile, int digit, st_u32 count) {
  constexpr int kAtOnce = 8;
  const st_u64 mark = radix_mark(digit);
  if (tile == 0) return 0;
  st_u64 before = 0;
  bool done = false;
  for (st_i64 last = tile - 1; !done; last -= kAtOnce) {
    st_u64 words[kAtOnce];
#pragma unroll
    for (int k = 0; k < kAtOnce; ++k)
      words[k] = last >= k ? published[(last - k) * kRadixBins] : mark | kRadixSummed;
#pragma unroll
    for (int k = 0; k < kAtOnce; ++k) {
      while (!done && words[k] < mark) words[k] = published[(last - k) * kRadixBins];
      if (!done) before += words[k] & (kRadixSummed - 1);
      done = done || (words[k] & kRadixSummed) != 0;
    }
  }
  published[tile * kRadixBins] = (mark | kRadixSummed) + before + count;
  return before;
}

// A tile's items and places share the room if several blocks still fit an SM.
constexpr int kRadixPlaceBytes = kRadixPlaces ? (int)sizeof(Index) : 0;
constexpr bool kRadixTogether = kRadixTile * (kRadixItemBytes + kRadixPlaceBytes) <= 36 << 10;
constexpr int kRadixRoom = kRadixTile * (kRadixTogether ? kRadixItemBytes + kRadixPlaceBytes
                                         : kRadixPlaceBytes > kRadixItemBytes ? kRadixPlaceBytes
                                                                              : kRadixItemBytes);

// In the first pass an item's place is its index.
ST_FN Index radix_place(const Index* read, bool first_turn, st_i64 begin, int i) {
  return first_turn ? (Index)(begin + i) : read[i];
}

// Items per thread. Short rows have smaller tiles, so that there are more of them; with places the
// branches would cost registers.
ST_FN int radix_items(st_i64 n, st_i64 tiles) {
  if (kRadixPlaces) return kRadixItems;
  const st_u32 threads = (st_u32)((n + ST_THREADS - 1) / ST_THREADS), all = (st_u32)tiles;
  return (int)((threads + all - 1) / all);
}

ST_FN void radix_pass(const Launch& launch, st_i64) {
  __shared__ __align__(16) char exchange[kRadixRoom];
  __shared__ st_u32 counters[kRadixWarps][kRadixBins], targets[kRadixBins];
  __shared__ st_u32 sums[kRadixWarps], ticket;
  const RadixMemory memory = radix_memory(launch);
  const int digit = (int)launch.pass[0], warp = ST_THREAD / 32, lane = ST_THREAD % 32;
  // Tiles are taken in order, so that earlier tiles have ended or belong to running blocks.
  if (ST_THREAD == 0) ticket = atomicAdd(memory.tickets + digit, 1u);
#pragma unroll
  for (int i = 0; i < kRadixWarps; ++i) counters[i][ST_THREAD] = 0;
  ST_SYNC();
  const st_i64 number = ticket / (st_u32)launch.pass[1], tile = ticket % (st_u32)launch.pass[1];
  const RadixPlan& plan = memory.plans[number];
  const st_u32 turn = plan.turns[digit];
  if (turn == kRadixSkipped) return;
  const bool last = turn + 1 == plan.num_turns;
  const st_i64 n = radix_length(launch);
  const int own = radix_items(n, launch.pass[1]), full = own * ST_THREADS;
  const st_i64 begin = tile * full;
  const int valid = n - begin < full ? (int)(n - begin) : full;
  const RadixRow row = radix_row(launch, number);
  const st_i64 from = memory.half * ((turn + 1) % 2) + number * n;
  const st_i64 to = memory.half * (turn % 2) + number * n;

  // A warp's items are neighbours.
  const int first = warp * own * 32 + lane, beyond = (warp + 1) * own * 32;
  const int end = beyond < valid ? beyond : valid;
  RadixItem items[kRadixItems];
  if (turn == 0 && !kRadixKeeps) {
#pragma unroll
    for (int k = 0; k < kRadixItems; ++k) {
      if (first + k * 32 < end) items[k] = radix_read(launch, row, begin + first + k * 32);
    }
  } else {
    const RadixItem* const read = turn == 0 ? (const RadixItem*)memory.read + number * n + begin
                                            : (const RadixItem*)memory.items + from + begin;
#pragma unroll
    for (int k = 0; k < kRadixItems; ++k) {
      if (first + k * 32 < end) items[k] = read[first + k * 32];
    }
  }
  // Items beyond the row count as the highest digit, since they come last.
  auto value_of_item = [&](int k) {
    return first + k * 32 < end ? radix_digit(launch, items[k], digit) : kRadixBins - 1;
  };
  // Count first, so that the counts are published before later tiles need them.
#pragma unroll
  for (int k = 0; k < kRadixItems; ++k) {
    if (k < own) atomicAdd(&counters[warp][value_of_item(k)], 1u);
  }
  ST_SYNC();
  st_u32 count = 0;
#pragma unroll
  for (int i = 0; i < kRadixWarps; ++i) count += counters[i][ST_THREAD];
  const st_u32 valid_count = ST_THREAD == kRadixBins - 1 ? count - (st_u32)(full - valid) : count;
  volatile st_u64* const published =
      memory.published + number * launch.pass[1] * kRadixBins + ST_THREAD;
  radix_publish(published, tile, digit, valid_count);
  // Start of each warp's items of each digit in the tile: by digits, then by warps.
  const st_u32 start = radix_sum_before(count, sums);
  st_u32 next = start;
#pragma unroll
  for (int i = 0; i < kRadixWarps; ++i) {
    const st_u32 some = counters[i][ST_THREAD];
    counters[i][ST_THREAD] = next;
    next += some;
  }
  ST_SYNC();
  st_u32 ranks[kRadixItems];  // positions in the tile
#pragma unroll
  for (int k = 0; k < kRadixItems; ++k) {
    if (k >= own) break;
    const int value = value_of_item(k);
    const st_u32 peers = radix_peers(value), before = peers & ((1u << lane) - 1);
    st_u32 base = 0;
    if (before == 0) base = atomicAdd(&counters[warp][value], (st_u32)__popc(peers));
    ranks[k] = __shfl_sync(~0u, base, __ffs((int)peers) - 1) + (st_u32)__popc(before);
    if (first + k * 32 < end) ((RadixItem*)exchange)[ranks[k]] = items[k];
  }
  const Index* const read_places = (const Index*)memory.places + from + begin;
  Index* const exchanged = (Index*)(exchange + (kRadixTogether ? kRadixTile * kRadixItemBytes : 0));
  if constexpr (kRadixPlaces && kRadixTogether) {
#pragma unroll
    for (int k = 0; k < kRadixItems; ++k) {
      const int i = first + k * 32;
      if (i < end) exchanged[ranks[k]] = radix_place(read_places, turn == 0, begin, i);
    }
  }
  const st_u64 before = radix_look_back(published, tile, digit, valid_count);
  const st_u32* const starts = memory.counts + (number * launch.pass[3] + digit) * kRadixBins;
  targets[ST_THREAD] = starts[ST_THREAD] + (st_u32)before - start;
  ST_SYNC();

  st_u32 places_to[kRadixItems];
#pragma unroll
  for (int k = 0; k < kRadixItems; ++k) {
    const int i = ST_THREAD + k * ST_THREADS;
    if (i >= valid) break;
    const RadixItem item = ((const RadixItem*)exchange)[i];
    const st_u32 place = targets[radix_digit(launch, item, digit)] + (st_u32)i;
    places_to[k] = place;
    if (!last) {
      ((RadixItem*)memory.items + to)[place] = item;
    } else if (kRadixPut) {
      radix_put(launch, row, place, item);
    }
  }
  if constexpr (kRadixPlaces) {
    if constexpr (!kRadixTogether) {
      ST_SYNC();
#pragma unroll
      for (int k = 0; k < kRadixItems; ++k) {
        const int i = first + k * 32;
        if (i < end) exchanged[ranks[k]] = radix_place(read_places, turn == 0, begin, i);
      }
      ST_SYNC();
    }
#pragma unroll
    for (int k = 0; k < kRadixItems; ++k) {
      const int i = ST_THREAD + k * ST_THREADS;
      if (i >= valid) break;
      const Index place = exchanged[i];
      if (last) {
        radix_put_place(launch, row, places_to[k], place);
      } else {
        ((Index*)memory.places + to)[places_to[k]] = place;
      }
    }
  }
}
