// compress.h on a CPU. Passes: 0 counts in each of pass[1] chunks of pass[0] elements, 1 sums the
// counts and compares them with the output's length, 2 lists the elements, 3 copies them. Scratch:
// a count for each chunk, then the list.

ST_FN st_i64* list_of(const Launch& launch) { return (st_i64*)launch.scratch + launch.pass[1]; }
ST_FN st_i64 chunk_end(const Launch& launch, st_i64 begin) {
  const st_i64 end = begin + launch.pass[0], count = st_own_count(launch.operand0);
  return end < count ? end : count;
}

// Tests several elements of the mask without a branch for each. Returns the number of nonzero ones.
constexpr int kMarked = 256;
ST_FN int read_marks(const Launch& launch, st_i64 begin, st_i64 end, bool* set) {
  const int some = end - begin < kMarked ? (int)(end - begin) : kMarked;
  if (launch.operand0.kOwn == 1) {
    const st_i64 step = launch.operand0.own_strides[0];
    const char* const from = launch.operand0.data + begin * step;
    if (step == (st_i64)sizeof(T0)) {
      for (int j = 0; j < some; ++j) set[j] = st_cast<bool>(st_load<T0>(from + j * sizeof(T0)));
    } else {
      for (int j = 0; j < some; ++j) set[j] = st_cast<bool>(st_load<T0>(from + j * step));
    }
  } else {
    for (int j = 0; j < some; ++j) set[j] = is_set(launch, begin + j);
  }
  return some;
}

ST_FN void phase0(const Launch& launch, st_i64 item) {
  const st_i64 begin = item * launch.pass[0], end = chunk_end(launch, begin);
  st_i64 sum = 0;
  bool set[kMarked];
  for (st_i64 i = begin; i < end; i += kMarked) {
    const int some = read_marks(launch, i, end, set);
    int count = 0;
    for (int j = 0; j < some; ++j) count += set[j];
    sum += count;
  }
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
  bool set[kMarked];
  int places[kMarked];
  for (st_i64 i = begin; i < end; i += kMarked) {
    const int some = read_marks(launch, i, end, set);
    int count = 0;
    for (int j = 0; j < some; ++j) {
      places[count] = j;
      count += set[j];
    }
    for (int j = 0; j < count; ++j) list(launch, list_of(launch), i + places[j], to + j);
    to += count;
  }
}

ST_FN void phase3(const Launch& launch, st_i64 item) { copy_listed(launch, list_of(launch), item); }
