// Combines elements by group, each group's in order, so that all runs have the same result.
// Programs 0, 1 and 2: element to accumulator, combination of two, accumulator to output. Scalar 0:
// the result of an empty group. The user of this text defines before it
//   st_i64 num_elements(launch)      along the axis
//   st_i64 group_of(launch, i)       of element i; num_groups(launch) or more: in none
//   Acc element(launch, place, i)    mapped; place: in the loop of the other axes
// Groups are along the last operand's own axis. The other axes have pass[3] items of pass[2] places
// each. Pass 0 clears a table of partial results, pass[1] per group. Pass 1 combines chunks of
// pass[0] elements into it, an item per chunk and part of the places. Pass 2, or 3 by blocks,
// combines a group's partial results, an item per group and place. There is one chunk if any other
// grouping is forbidden. With few places a GPU sorts the elements by group (grouping.h).

typedef Program0 Acc;

// The combination of some elements, or of none.
struct Part {
  Acc value;
  bool some;
};
ST_FN Part join(Part a, Part b) {
  if (!a.some) return b;
  if (!b.some) return a;
  return Part{run1(a.value, b.value), true};
}
ST_FN void add(Part& part, Acc value) {
  part.value = part.some ? run1(part.value, value) : value;
  part.some = true;
}

ST_FN st_i64 num_groups(const Launch& launch) { return launch.ST_LAST.own_extents[0]; }
ST_FN void store_group(const Launch& launch, const Place& place, st_i64 group, Part part) {
  if (!part.some) part.value = st_load<Acc>(launch.scalars[0]);
  st_store<TLast>(st_at(launch.ST_LAST, place) + group * launch.ST_LAST.own_strides[0],
                  run2(part.value));
}

ST_FN Part* part_of(const Launch& launch, st_i64 chunk, st_i64 group, st_i64 place) {
  return (Part*)launch.scratch + (chunk * num_groups(launch) + group) * launch.count + place;
}

ST_FN void phase0(const Launch& launch, st_i64 item) { ((Part*)launch.scratch)[item].some = false; }

#if !ST_CUDA
// Elements [begin, end) of one place. Several groups are looked up at once, by vectors. Copies the
// launch's values that the loop needs, so that the compiler knows that stores of results do not
// change them.
ST_FN void combine_chunk(const Launch& launch, st_i64 chunk, st_i64 number, st_i64 begin,
                         st_i64 end) {
  const Launch own = launch;
  const st_i64 groups = num_groups(own), count = own.count;
  const Place place = st_place(own, number);
  Part* const parts = part_of(own, chunk, 0, number);
  st_i64 in[kGroupsTogether];
  for (st_i64 i = begin; i < end; i += kGroupsTogether) {
    const int some = end - i < kGroupsTogether ? (int)(end - i) : kGroupsTogether;
    groups_of(own, i, some, in);
    for (int j = 0; j < some; ++j) {
      if (in[j] >= groups) continue;
      Part& part = parts[in[j] * count];
      const Acc value = element(own, place, i + j);
      // Combines in any case, then selects: a processor could not predict a branch.
      const Acc sum = run1(part.some ? part.value : value, value);
      part.value = part.some ? sum : value;
      part.some = true;
    }
  }
}
#endif

ST_FN void phase1(const Launch& launch, st_i64 item) {
  const st_i64 chunk = item / launch.pass[3], first = item % launch.pass[3] * launch.pass[2];
  const st_i64 last = first + launch.pass[2] < launch.count ? first + launch.pass[2] : launch.count;
  const st_i64 begin = chunk * launch.pass[0], limit = begin + launch.pass[0];
  const st_i64 n = num_elements(launch), end = limit < n ? limit : n, groups = num_groups(launch);
#if !ST_CUDA
  if (last - first == 1) return combine_chunk(launch, chunk, first, begin, end);
#endif
  const Place only = st_place(launch, first);
  for (st_i64 i = begin; i < end; ++i) {
    const st_i64 group = group_of(launch, i);
    if (group >= groups) continue;
    Part* const parts = part_of(launch, chunk, group, 0);
    if (last - first == 1) {
      add(parts[first], element(launch, only, i));
      continue;
    }
    for (st_i64 k = first; k < last; ++k) add(parts[k], element(launch, st_place(launch, k), i));
  }
}

ST_FN void phase2(const Launch& launch, st_i64 item) {
  if (launch.fault[0] != 0) return;
  const st_i64 group = item / launch.count, place = item % launch.count;
  Part sum = *part_of(launch, 0, group, place);
  for (st_i64 chunk = 1; chunk < launch.pass[1]; ++chunk)
    sum = join(sum, *part_of(launch, chunk, group, place));
  store_group(launch, st_place(launch, place), group, sum);
}

ST_FN void phase3(const Launch& launch, st_i64 item) {
  if (launch.fault[0] != 0) return;
  ST_SHARED Part sums[ST_THREADS];
  const st_i64 group = item / launch.count, place = item % launch.count;
  const st_i64 each = (launch.pass[1] + ST_THREADS - 1) / ST_THREADS, begin = ST_THREAD * each;
  const st_i64 end = begin + each < launch.pass[1] ? begin + each : launch.pass[1];
  Part sum;
  sum.some = false;
  for (st_i64 chunk = begin; chunk < end; ++chunk)
    sum = join(sum, *part_of(launch, chunk, group, place));
  sums[ST_THREAD] = sum;
  for (int step = 1; step < ST_THREADS; step *= 2) {
    ST_SYNC();
    if (ST_THREAD % (2 * step) == 0 && ST_THREAD + step < ST_THREADS)
      sums[ST_THREAD] = join(sums[ST_THREAD], sums[ST_THREAD + step]);
  }
  ST_SYNC();
  if (ST_THREAD == 0) store_group(launch, st_place(launch, place), group, sums[0]);
}
