// compress.h on a CPU. Passes: 0 counts in each of pass[1] chunks of pass[0] elements, 1 sums the
// counts and compares them with the output's length, 2 lists the elements, 3 copies them. Scratch:
// a count for each chunk, then the list.

ST_FN st_i64* list_of(const Launch& launch) { return (st_i64*)launch.scratch + launch.pass[1]; }
ST_FN st_i64 chunk_end(const Launch& launch, st_i64 begin) {
  const st_i64 end = begin + launch.pass[0], count = st_own_count(launch.operand0);
  return end < count ? end : count;
}

ST_FN void phase0(const Launch& launch, st_i64 item) {
  const st_i64 begin = item * launch.pass[0], end = chunk_end(launch, begin);
  st_i64 sum = 0;
  for (st_i64 i = begin; i < end; ++i) sum += is_set(launch, i);
  ((st_i64*)launch.scratch)[item] = sum;
}

ST_FN void phase1(const Launch& launch, st_i64) {
  st_i64* const counts = (st_i64*)launch.scratch;
  st_i64 sum = 0;
  for (st_i64 i = 0; i < launch.pass[1]; ++i) {
    const st_i64 count = counts[i];
    counts[i] = sum;
    sum += count;
  }
  const st_i64 expected = launch.ST_LAST.own_extents[0];
  if (sum != expected) st_note_fault(launch, kWrongCount, sum, expected);
}

ST_FN void phase2(const Launch& launch, st_i64 item) {
  if (launch.fault[0] != 0) return;
  const st_i64 begin = item * launch.pass[0], end = chunk_end(launch, begin);
  st_i64 to = ((const st_i64*)launch.scratch)[item];
  for (st_i64 i = begin; i < end; ++i) {
    if (is_set(launch, i)) list(launch, list_of(launch), i, to++);
  }
}

ST_FN void phase3(const Launch& launch, st_i64 item) { copy_listed(launch, list_of(launch), item); }
