// The passes of group.h that sort, after merge.h.

ST_FN Entry* sorted_half(const Launch& launch, st_i64 half) {
  return (Entry*)launch.scratch + half * num_elements(launch);
}
// pass[1] of the sorting passes, and pass[2] of those after them: the half.
ST_FN void phase3(const Launch& launch, st_i64 item) {
  const st_i64 begin = item * kTile, left = num_elements(launch) - begin;
  const Row row = {nullptr};
  sort_tile(launch, row, nullptr, begin, left < kTile ? (int)left : kTile, kTile,
            sorted_half(launch, launch.pass[1] & 1), begin);
}

ST_FN void phase4(const Launch& launch, st_i64 item) {
  const st_i64 half = launch.pass[1] & 1, group = launch.pass[3];
  const Row row = {nullptr};
  merge_group(launch, row, sorted_half(launch, half), num_elements(launch), launch.pass[0],
              item * group, item * group + group, sorted_half(launch, 1 - half));
}

ST_FN Part* head_of(const Launch& launch, st_i64 chunk, st_i64 place) {
  return (Part*)(launch.scratch + launch.pass[3]) + chunk * launch.count + place;
}

// Entries [begin, end) of the same group.
ST_FN Part combine_run(const Launch& launch, const Place& place, const Entry* sorted, st_i64 begin,
                       st_i64 end) {
  Part part;
  part.some = false;
  for (st_i64 i = begin; i < end; ++i) add(part, element(launch, place, (st_i64)sorted[i].place));
  return part;
}

// The first entry of this group, or of a later one.
ST_FN st_i64 first_of(const Entry* sorted, st_i64 low, st_i64 high, st_i64 group) {
  while (low < high) {
    const st_i64 middle = low + (high - low) / 2;
    if ((st_i64)sorted[middle].group < group) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

ST_FN void phase5(const Launch& launch, st_i64 item) {
  const st_i64 chunk = item / launch.count, place = item % launch.count, n = num_elements(launch);
  const st_i64 begin = chunk * launch.pass[0], limit = begin + launch.pass[0];
  const Entry* const sorted = sorted_half(launch, launch.pass[2]);
  const st_i64 group = (st_i64)sorted[begin].group;
  if (launch.fault[0] != 0 || group >= num_groups(launch)) return;
  if (chunk == 0 || (st_i64)sorted[begin - 1].group != group) return;
  const st_i64 end = first_of(sorted, begin, limit < n ? limit : n, group + 1);
  *head_of(launch, chunk, place) = combine_run(launch, st_place(launch, place), sorted, begin, end);
}

ST_FN void phase6(const Launch& launch, st_i64 item) {
  if (launch.fault[0] != 0) return;
  const st_i64 group = item / launch.count, number = item % launch.count, n = num_elements(launch);
  const Place place = st_place(launch, number);
  const Entry* const sorted = sorted_half(launch, launch.pass[2]);
  const st_i64 begin = first_of(sorted, 0, n, group), end = first_of(sorted, begin, n, group + 1);
  const st_i64 size = launch.pass[0], first = begin / size;
  const st_i64 limit = (first + 1) * size;
  Part sum = combine_run(launch, place, sorted, begin, end < limit ? end : limit);
  for (st_i64 chunk = first + 1; chunk * size < end; ++chunk)
    sum = join(sum, *head_of(launch, chunk, number));
  store_group(launch, place, group, sum);
}
