// Elements where a mask is not zero. Operands: the mask (own axes), then either input (the mask's
// own axes, and the loop's) and output (one own axis and the loop's), or, with option 0, one output
// for each axis of the mask, which takes the indices. Passes: 0 counts in each of pass[1] chunks of
// pass[0] elements, 1 sums the counts and compares them with the output's length, 2 lists the
// elements, 3 copies them. Scratch: a count for each chunk, then the list.
constexpr bool kIndices = kOption0 != 0;
constexpr int kRun = 8;

ST_FN bool is_set(const Launch& launch, st_i64 number) {
  return st_cast<bool>(st_load<T0>(launch.operand0.data + st_own_offset(launch.operand0, number)));
}
ST_FN st_i64 chunk_end(const Launch& launch, st_i64 begin) {
  const st_i64 end = begin + launch.pass[0], count = st_own_count(launch.operand0);
  return end < count ? end : count;
}
// The counts of the threads before, and of all.
ST_FN int count_before(int count, int* total) {
#if ST_CUDA
  __shared__ int counts[2][ST_THREADS];
  int from = 0;
  counts[0][ST_THREAD] = count;
  __syncthreads();
  for (int step = 1; step < ST_THREADS; step *= 2, from = 1 - from) {
    counts[1 - from][ST_THREAD] =
        counts[from][ST_THREAD] + (ST_THREAD >= step ? counts[from][ST_THREAD - step] : 0);
    __syncthreads();
  }
  const int sum = counts[from][ST_THREAD];
  *total = counts[from][ST_THREADS - 1];
  __syncthreads();
  return sum - count;
#else
  *total = count;
  return 0;
#endif
}

ST_FN void phase0(const Launch& launch, st_i64 item) {
  const st_i64 begin = item * launch.pass[0], end = chunk_end(launch, begin);
  st_i64 sum = 0;
  for (st_i64 start = begin; start < end; start += ST_THREADS) {
    const st_i64 i = start + ST_THREAD;
    int total;
    count_before(i < end && is_set(launch, i) ? 1 : 0, &total);
    sum += total;
  }
  if (ST_THREAD == 0) ((st_i64*)launch.scratch)[item] = sum;
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

// An element of the mask as the output's element `to`.
ST_FN void list(const Launch& launch, st_i64 number, st_i64 to) {
  if constexpr (!kIndices) {
    ((st_i64*)launch.scratch)[launch.pass[1] + to] = number;
  } else {
    st_i64 rest = number;
#define ST_COORDINATE(k)                                                           \
  {                                                                                \
    const st_i64 extent = launch.operand0.own_extents[k - 1];                      \
    st_store<T##k>(launch.operand##k.data + to * launch.operand##k.own_strides[0], \
                   st_cast<T##k>(rest % extent));                                  \
    rest /= extent;                                                                \
  }
    ST_OUTPUTS_BACKWARDS(ST_COORDINATE)
  }
}

ST_FN void phase2(const Launch& launch, st_i64 item) {
  if (launch.fault[0] != 0) return;
  const st_i64 begin = item * launch.pass[0], end = chunk_end(launch, begin);
  st_i64 to = ((const st_i64*)launch.scratch)[item];
  for (st_i64 start = begin; start < end; start += ST_THREADS * kRun) {
    const st_i64 first = start + ST_THREAD * kRun;
    bool set[kRun];
    int count = 0, total;
    for (int k = 0; k < kRun; ++k) {
      set[k] = first + k < end && is_set(launch, first + k);
      count += set[k];
    }
    st_i64 next = to + count_before(count, &total);
    for (int k = 0; k < kRun; ++k) {
      if (set[k]) list(launch, first + k, next++);
    }
    to += total;
  }
}

ST_FN void phase3(const Launch& launch, st_i64 item) {
  if constexpr (!kIndices) {
    if (launch.fault[0] != 0) return;
    // Neighbouring items go along whichever axis of the output has the smaller steps.
    const st_i64 count = launch.ST_LAST.own_extents[0], step = launch.ST_LAST.own_strides[0];
    const bool along = launch.count == 1 || (step > 0 && step < launch.ST_LAST.strides[kRank - 1]);
    const st_i64 to = along ? item % count : item / launch.count;
    const Place place = st_place(launch, along ? item / count : item % launch.count);
    const st_i64 number = ((const st_i64*)launch.scratch)[launch.pass[1] + to];
    const T1 value =
        st_load<T1>(st_at(launch.operand1, place) + st_own_offset(launch.operand1, number));
    st_store<TLast>(st_at(launch.ST_LAST, place) + to * step, st_convert<TLast>(value));
  }
}
