// The passes of sort.h, after merge.h.

// A row's entries in half 0 or 1 of the scratch memory, which has room for `room` of them.
ST_FN Entry* entries_of(const Launch& launch, st_i64 half, st_i64 row, st_i64 room) {
  return (Entry*)launch.scratch + (half * launch.count + row) * room;
}

// Sorts entries tile by tile: those of the scratch memory (`again`), or the row's.
ST_FN void sort_tiles(const Launch& launch, st_i64 item, st_i64 n, bool again) {
  const bool few = launch.pass[2] != 0, last = (launch.pass[1] & 2) != 0;
  const st_i64 num_tiles = (n + kTile - 1) / kTile, number = item / num_tiles;
  const st_i64 begin = item % num_tiles * kTile;
  const int count = n - begin < kTile ? (int)(n - begin) : kTile;
  const st_i64 half = launch.pass[1] & 1, keep = few ? launch.pass[2] : kTile;
  const st_i64 room = few ? launch.pass[3] : n;
  const Entry* const from = again ? entries_of(launch, 1 - half, number, room) : nullptr;
  Entry* const to = last ? nullptr : entries_of(launch, half, number, room);
  sort_tile(launch, row_of(launch, number), from, begin, count, keep, to, begin / kTile * keep);
}

ST_FN void phase0(const Launch& launch, st_i64 item) {
  sort_tiles(launch, item, launch.operand0.own_extents[0], false);
}

ST_FN void phase1(const Launch& launch, st_i64 item) {
  const st_i64 n = launch.operand0.own_extents[0], group = launch.pass[3];
  const st_i64 number = item / launch.pass[2], half = launch.pass[1] & 1;
  const st_i64 begin = item % launch.pass[2] * group;
  merge_group(launch, row_of(launch, number), entries_of(launch, half, number, n), n,
              launch.pass[0], begin, begin + group,
              launch.pass[1] & 2 ? nullptr : entries_of(launch, 1 - half, number, n));
}

ST_FN void phase2(const Launch& launch, st_i64 item) {
  sort_tiles(launch, item, launch.pass[0], true);
}
