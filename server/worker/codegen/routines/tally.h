// How many elements each group has, after its user's num_elements(), group_of(), on a CPU
//   groups_of(launch, i, some, groups)   of up to kGroupsTogether elements from i on
// and
//   store_count(launch, group, count)
// Pass 4 clears pass[1] rows of counts, 5 counts chunks of pass[0] elements, and 6 adds rows up.
// pass[2]: the chunks share one row.
constexpr int kSharedCounts = 4096;

#if ST_CUDA
ST_FN void count_one(st_u64* at) { atomicAdd(at, 1ull); }
#else
ST_FN void count_one(st_u64* at) { ++*at; }
#endif

ST_FN void phase4(const Launch& launch, st_i64 item) { ((st_u64*)launch.scratch)[item] = 0; }

ST_FN void phase5(const Launch& launch, st_i64 item) {
  const st_i64 groups = launch.ST_LAST.own_extents[0], n = num_elements(launch);
  const st_i64 begin = item * launch.pass[0];
  const st_i64 end = begin + launch.pass[0] < n ? begin + launch.pass[0] : n;
  st_u64* const row = (st_u64*)launch.scratch + (launch.pass[2] ? 0 : item * groups);
#if ST_CUDA
  __shared__ st_u32 counts[kSharedCounts];
  const bool shared = groups <= kSharedCounts;
  if (shared) {
    for (int i = ST_THREAD; i < groups; i += ST_THREADS) counts[i] = 0;
    ST_SYNC();
  }
#pragma unroll 4
  for (st_i64 i = begin + ST_THREAD; i < end; i += ST_THREADS) {
    const st_i64 group = group_of(launch, i);
    if (group >= groups) continue;
    if (shared) {
      atomicAdd(&counts[group], 1u);
    } else {
      count_one(row + group);
    }
  }
  if (shared) {
    ST_SYNC();
    for (int i = ST_THREAD; i < groups; i += ST_THREADS) {
      if (counts[i] != 0) atomicAdd(row + i, (st_u64)counts[i]);
    }
    ST_SYNC();
  }
#else
  st_i64 in[kGroupsTogether];
  // For few groups there are two tables, so that equal neighbours do not contend, and a counter for
  // elements in no group.
  constexpr int kFewGroups = 2047;
  st_u32 even[kFewGroups + 1], odd[kFewGroups + 1];
  const bool few = groups <= kFewGroups;
  for (int i = 0; i <= groups && few; ++i) even[i] = odd[i] = 0;
  for (st_i64 i = begin; i < end; i += kGroupsTogether) {
    const int some = end - i < kGroupsTogether ? (int)(end - i) : kGroupsTogether;
    groups_of(launch, i, some, in);
    if (few) {
      int j = 0;
      for (; j + 2 <= some; j += 2) {
        ++even[in[j]];
        ++odd[in[j + 1]];
      }
      if (j < some) ++even[in[j]];
      // A chunk may have more elements than a 32-bit counter holds.
      if ((i - begin) >> 30 == (i + kGroupsTogether - begin) >> 30) continue;
      for (int k = 0; k < groups; ++k) {
        row[k] += (st_u64)even[k] + odd[k];
        even[k] = odd[k] = 0;
      }
      continue;
    }
    for (int j = 0; j < some; ++j) {
      if (in[j] < groups) count_one(row + in[j]);
    }
  }
  for (int k = 0; k < groups && few; ++k) row[k] += (st_u64)even[k] + odd[k];
#endif
}

ST_FN void phase6(const Launch& launch, st_i64 item) {
  const st_i64 groups = launch.ST_LAST.own_extents[0];
  st_u64 sum = 0;
  for (st_i64 row = 0; row < launch.pass[1]; ++row)
    sum += ((const st_u64*)launch.scratch)[row * groups + item];
  store_count(launch, item, sum);
}
