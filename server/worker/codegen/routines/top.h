// The first k elements of long rows in order. narrow.h finds the key of the last one; then a pass
// gathers the elements not after it, in any order. Equal elements are taken by position; if not all
// of them are wanted, a pass counts them before. Passes after those of narrow.h: top_ties and
// top_gather, with items and arguments as seek_count; then sort.h's last. pass[3]: offset of the
// counts of equal elements in the scratch memory.
ST_FN int num_ranks(const Launch&) { return 1; }
ST_FN st_i64 rank_of(const Launch& launch, st_i64, int) {
  return launch.ST_LAST.own_extents[0] - 1;
}
ST_FN void found(const Launch&, st_i64, int, T0) {}

ST_FN st_u64* ties_of(const Launch& launch, st_i64 number) {
  return (st_u64*)(launch.scratch + launch.pass[3]) + number * launch.pass[1];
}
struct TopRow {
  RadixKey last;     // the key of the last element
  st_i64 num_equal;  // number of elements with this key among the first k
  bool has_all;      // all elements with this key are among the first k
};
ST_FN TopRow top_row(const Launch& launch, st_i64 number) {
  const Seek seek = *seeks_of(launch, number, kDigits % 2);
  return TopRow{(RadixKey)seek.prefix, (st_i64)seek.left + 1,
                state_of(launch, number)->num_found == seek.left + 1};
}
// Ties are resolved by position, which collected elements do not have, so read the input.
ST_FN Chunk chunk_of_input(const Launch& launch, st_i64 item) {
  Chunk chunk;
  chunk.number = item / launch.pass[1];
  const st_i64 n = launch.operand0.own_extents[0];
  chunk.begin = item % launch.pass[1] * launch.pass[0];
  chunk.end = chunk.begin + launch.pass[0] < n ? chunk.begin + launch.pass[0] : n;
  chunk.collected = nullptr;
  return chunk;
}

ST_FN void top_ties(const Launch& launch, st_i64 item) {
  __shared__ st_u32 count;
  const Chunk chunk = chunk_of_input(launch, item);
  const TopRow top = top_row(launch, chunk.number);
  if (top.has_all) return;
  if (ST_THREAD == 0) count = 0;
  ST_SYNC();
  st_u32 own = 0;
  for_elements(launch, row_of(launch, chunk.number), nullptr, chunk.begin, chunk.end,
               [&](const Entry* entries, st_u32 bits) {
#pragma unroll
                 for (int k = 0; k < kSoughtAtOnce; ++k)
                   own += (bits >> k & 1) && seek_key(entries[k].key) == top.last;
               });
#pragma unroll
  for (int step = 16; step > 0; step /= 2) own += __shfl_xor_sync(~0u, own, step);
  if (ST_THREAD % 32 == 0) atomicAdd(&count, own);
  ST_SYNC();
  if (ST_THREAD == 0) ties_of(launch, chunk.number)[item % launch.pass[1]] = count;
}

// Number of equal elements in earlier chunks. Called by a block.
ST_FN st_i64 ties_before(const Launch& launch, st_i64 item, st_u64* sum) {
  const st_u64* const ties = ties_of(launch, item / launch.pass[1]);
  if (ST_THREAD == 0) *sum = 0;
  ST_SYNC();
  st_u64 own = 0;
  for (st_i64 i = ST_THREAD; i < item % launch.pass[1]; i += ST_THREADS) own += ties[i];
  if (own != 0) atomicAdd(sum, own);
  ST_SYNC();
  return (st_i64)*sum;
}

ST_FN void top_gather(const Launch& launch, st_i64 item) {
  __shared__ Appending appending;
  __shared__ st_u64 sum;
  __shared__ st_u32 warps[kWarps];
  const TopRow top = top_row(launch, item / launch.pass[1]);
  const Chunk chunk = top.has_all ? chunk_of(launch, item) : chunk_of_input(launch, item);
  if (chunk.begin >= chunk.end) return;
  const st_i64 k = launch.ST_LAST.own_extents[0];
  Entry* const list = entries_of(launch, 0, chunk.number, k);
  st_u64* const num = &state_of(launch, chunk.number)->num_put;
  // Number of this chunk's equal elements that are wanted.
  st_i64 wanted = top.num_equal;
  if (!top.has_all) wanted -= ties_before(launch, item, &sum);
  if (ST_THREAD == 0) appending.count = 0;
  ST_SYNC();
  const int lane = ST_THREAD % 32, warp = ST_THREAD / 32;
  for_elements(launch, row_of(launch, chunk.number), chunk.collected, chunk.begin, chunk.end,
               [&](const Entry* entries, st_u32 bits) {
                 st_u32 before = 0, equal = 0;
#pragma unroll
                 for (int j = 0; j < kSoughtAtOnce; ++j) {
                   if (!(bits >> j & 1)) continue;
                   const RadixKey key = seek_key(entries[j].key);
                   before |= (st_u32)(key < top.last) << j;
                   equal |= (st_u32)(key == top.last) << j;
                 }
                 if (top.has_all) {
                   before |= equal;
                 } else if (wanted > 0) {
#pragma unroll
                   for (int j = 0; j < kSoughtAtOnce; ++j) {
                     const st_u32 lanes = __ballot_sync(~0u, equal >> j & 1);
                     if (lane == 0) warps[warp] = (st_u32)__popc(lanes);
                     ST_SYNC();
                     st_i64 rank = __popc(lanes & ((1u << lane) - 1)), all = 0;
                     for (int i = 0; i < kWarps; ++i) {
                       if (i == warp) rank += all;
                       all += warps[i];
                     }
                     if ((equal >> j & 1) && rank < wanted) before |= 1u << j;
                     wanted -= all;
                     ST_SYNC();
                   }
                 }
                 append<kSoughtAtOnce>(list, num, k, entries, before, &appending);
               });
}
