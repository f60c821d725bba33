// Combines groups of sorted elements in parts, after grouping.h and entries.h. The emitter numbers
// the phases. fill gives each group the result of an empty one. segments combines tiles of the
// sorted elements, an item per tile and place of the other axes: groups within a tile are finished,
// and for others each tile stores its part. joins combines those parts, an item per tile in which
// such a group begins. pass[0]: offset of the parts in the scratch memory; pass[1]: number of
// tiles.

// As the tiles of GroupBySorting() in group_shape.cc.
constexpr int kSegmentItems = sizeof(Acc) > 4 ? 4 : 8, kSegmentTile = kSegmentItems * ST_THREADS;

// The part of the last group of a stretch of sorted elements, and whether this group begins in the
// stretch.
struct Open {
  Part part;
  bool begins;
};
ST_FN Open followed_by(const Open& a, const Open& b) {
  return b.begins ? b : Open{join(a.part, b.part), a.begins};
}

// A tile's two parts: of the group that began in an earlier tile, then of the group that continues
// in a later one.
ST_FN Part* left_over(const Launch& launch, st_i64 number, st_i64 tile) {
  return (Part*)(launch.scratch + launch.pass[0]) + 2 * (number * launch.pass[1] + tile);
}

ST_FN void fill(const Launch& launch, st_i64 item) {
  if (launch.fault[0] != 0) return;
  Part none;
  none.some = false;
  store_group(launch, st_place(launch, item % launch.count), item / launch.count, none);
}

ST_FN void segments(const Launch& launch, st_i64 item) {
  __shared__ Acc values[kSegmentTile + kSegmentTile / 8];
  __shared__ Index groups[kSegmentTile + kSegmentTile / 8];
  __shared__ Open opens[2][ST_THREADS];
  if (launch.fault[0] != 0) return;
  const st_i64 tile = item % launch.pass[1], number = item / launch.pass[1];
  const st_i64 n = num_entries(launch), begin = tile * kSegmentTile;
  const int valid = n - begin < kSegmentTile ? (int)(n - begin) : kSegmentTile;
  const Index limit = (Index)num_groups(launch);
  const RadixRow sorted = radix_row(launch, 0);
  const Place place = st_place(launch, number);
  Index own[kSegmentItems], from[kSegmentItems];
#pragma unroll
  for (int k = 0; k < kSegmentItems; ++k) {
    const int i = k * ST_THREADS + ST_THREAD;
    own[k] = i < valid ? sorted.groups[begin + i] : limit;
    from[k] = i < valid ? sorted.places[begin + i] : 0;
  }
#pragma unroll
  for (int k = 0; k < kSegmentItems; ++k) {
    const int i = k * ST_THREADS + ST_THREAD;
    groups[i + i / 8] = own[k];
    if (own[k] < limit) values[i + i / 8] = element(launch, place, (st_i64)from[k]);
  }
  ST_SYNC();
  // Compare with the groups before and after the tile, if there are any.
  const bool has_before = begin > 0 && groups[0] == sorted.groups[begin - 1];
  const bool goes_on =
      begin + valid < n && sorted.groups[begin + valid] == groups[valid - 1 + (valid - 1) / 8];
  const int first = ST_THREAD * kSegmentItems;
  const Index* const mine = groups + first + first / 8;
  const Acc* const terms = values + first + first / 8;
  auto begins = [&](int k) {
    if (first + k == 0) return !has_before;
    return mine[k] != (k > 0 ? mine[k - 1] : groups[first - 1 + (first - 1) / 8]);
  };
  // The state at the end of each thread's elements.
  Open open;
  open.part.some = open.begins = false;
#pragma unroll
  for (int k = 0; k < kSegmentItems; ++k) {
    if (first + k >= valid) break;
    if (begins(k)) {
      open.part.some = false;
      open.begins = true;
    }
    if (mine[k] < limit) add(open.part, terms[k]);
  }
  int half = 0;
  opens[0][ST_THREAD] = open;
  for (int step = 1; step < ST_THREADS; step *= 2, half = 1 - half) {
    ST_SYNC();
    if (ST_THREAD >= step) open = followed_by(opens[half][ST_THREAD - step], open);
    opens[1 - half][ST_THREAD] = open;
  }
  ST_SYNC();
  open.part.some = open.begins = false;
  if (ST_THREAD > 0) open = opens[half][ST_THREAD - 1];
  Part* const left = left_over(launch, number, tile);
  auto close = [&](Index group, bool later) {
    if (group >= limit) return;
    if (!open.begins) {
      left[0] = open.part;
    } else if (later) {
      left[1] = open.part;
    } else {
      store_group(launch, place, (st_i64)group, open.part);
    }
  };
#pragma unroll
  for (int k = 0; k < kSegmentItems; ++k) {
    if (first + k >= valid) break;
    if (begins(k)) {
      if (first + k > 0) close(k > 0 ? mine[k - 1] : groups[first - 1 + (first - 1) / 8], false);
      open.part.some = false;
      open.begins = true;
    }
    if (mine[k] < limit) add(open.part, terms[k]);
    if (first + k == valid - 1) close(mine[k], goes_on);
  }
}

ST_FN void joins(const Launch& launch, st_i64 item) {
  __shared__ Part sums[ST_THREADS];
  if (launch.fault[0] != 0) return;
  const st_i64 tiles = launch.pass[1], tile = item % tiles, number = item / tiles;
  const st_i64 n = num_entries(launch), begin = tile * kSegmentTile, next = begin + kSegmentTile;
  if (next >= n) return;
  const Index* const groups = radix_row(launch, 0).groups;
  const Index group = groups[next];
  if (group >= (Index)num_groups(launch) || groups[next - 1] != group) return;
  if (groups[begin] == group && begin > 0 && groups[begin - 1] == group) return;
  // Find the tiles that begin with this group, from the next one on.
  st_i64 low = tile + 1, high = tiles - 1;
  while (low < high) {
    const st_i64 middle = low + (high - low + 1) / 2;
    if (groups[middle * kSegmentTile] == group) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  const st_i64 count = low - tile, each = (count + ST_THREADS - 1) / ST_THREADS;
  const st_i64 end = (ST_THREAD + 1) * each < count ? (ST_THREAD + 1) * each : count;
  Part sum;
  sum.some = false;
  for (st_i64 i = ST_THREAD * each; i < end; ++i)
    sum = join(sum, left_over(launch, number, tile + 1 + i)[0]);
  sums[ST_THREAD] = sum;
  for (int step = 1; step < ST_THREADS; step *= 2) {
    ST_SYNC();
    if (ST_THREAD % (2 * step) == 0 && ST_THREAD + step < ST_THREADS)
      sums[ST_THREAD] = join(sums[ST_THREAD], sums[ST_THREAD + step]);
  }
  ST_SYNC();
  if (ST_THREAD == 0)
    store_group(launch, st_place(launch, number), (st_i64)group,
                join(left_over(launch, number, tile)[1], sums[0]));
}
