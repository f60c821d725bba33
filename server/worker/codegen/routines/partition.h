// Partitions rows: the elements of given ranks are at their sorted positions. Operands: input and
// output, partitioned along their own axis. Options: those of sort.h, 0 except the second. Scalars:
// the ranks, ascending. Short rows, many ranks and complex numbers are sorted by sort.h's passes.
// Otherwise seek.h finds the elements of these ranks, which divide the others into classes: below
// the first, equal to it, between it and the second, and so on. Phase 7 counts runs of pass[0]
// elements by class; a row has pass[1] runs. Phase 8 sums the counts, and 9 moves elements.
// pass[3]: offset of the counts in the scratch memory.
constexpr int kClasses = 2 * ST_SCALARS + 1;

ST_FN int num_ranks(const Launch&) { return ST_SCALARS; }
ST_FN st_i64 rank_of(const Launch& launch, st_i64, int j) {
  return st_load<st_i64>(launch.scalars[j]);
}
ST_FN void found(const Launch&, st_i64, int, T0) {}

// A row's counts: of all runs in the first class, then in the second, and so on.
ST_FN st_i64* runs_of(const Launch& launch, st_i64 number) {
  return (st_i64*)(launch.scratch + launch.pass[3]) + number * kClasses * launch.pass[1];
}
ST_FN st_i64 end_of_run(const Launch& launch, st_i64 begin) {
  const st_i64 n = launch.operand0.own_extents[0], end = begin + launch.pass[0];
  return end < n ? end : n;
}

#if ST_CUDA
ST_FN int class_of(const Seek* pivots, st_u64 key) {
  int in = 0;
  for (int j = 0; j < ST_SCALARS; ++j) {
    if (key < pivots[j].prefix) break;
    in = 2 * j + 2;
    if (key == pivots[j].prefix) return 2 * j + 1;
  }
  return in;
}

ST_FN void phase7(const Launch& launch, st_i64 item) {
  const st_i64 number = item / launch.pass[1], run = item % launch.pass[1];
  const st_i64 begin = run * launch.pass[0], end = end_of_run(launch, begin);
  const char* const row = row_of(launch, number).in;
  const Seek* const pivots = seeks_of(launch, number, kDigits % 2);
  st_i64 counts[kClasses] = {};
  for (st_i64 i = begin; i < end; ++i) ++counts[class_of(pivots, key_at(launch, row, i))];
  st_i64* const to = runs_of(launch, number) + run;
  for (int k = 0; k < kClasses; ++k) to[k * launch.pass[1]] = counts[k];
}
#else
// The distinct pivots of a row.
struct Pivots {
  int num;
  RadixKey keys[ST_SCALARS];
};
ST_FN Pivots pivots_of(const Launch& launch, st_i64 number) {
  const Seek* const seeks = seeks_of(launch, number, kDigits % 2);
  Pivots pivots;
  pivots.num = 0;
  for (int j = 0; j < ST_SCALARS; ++j) {
    if (j == 0 || seeks[j].prefix != seeks[j - 1].prefix)
      pivots.keys[pivots.num++] = (RadixKey)seeks[j].prefix;
  }
  return pivots;
}

ST_FN void phase7(const Launch& launch, st_i64 item) {
  alignas(64) RadixKey keys[kKeyBlock];
  const st_i64 number = item / launch.pass[1], run = item % launch.pass[1];
  const st_i64 begin = run * launch.pass[0], end = end_of_run(launch, begin);
  const st_i64 step = launch.operand0.own_strides[0];
  const char* const row = row_of(launch, number).in;
  const Pivots pivots = pivots_of(launch, number);
  // Numbers of elements not below each pivot, and above it.
  st_i64 not_below[ST_SCALARS + 1] = {}, above[ST_SCALARS + 1] = {};
  for (st_i64 i = begin; i < end; i += kKeyBlock) {
    const int some = end - i < kKeyBlock ? (int)(end - i) : kKeyBlock;
    read_keys(row + i * step, step, some, keys);
    for (int j = 0; j < pivots.num; ++j) {
      const RadixKey pivot = pivots.keys[j];
      int greater = 0, equal = 0;
      for (int k = 0; k < some; ++k) {
        greater += keys[k] > pivot;
        equal += keys[k] == pivot;
      }
      above[j] += greater;
      not_below[j] += greater + equal;
    }
  }
  st_i64* const to = runs_of(launch, number) + run;
  for (int k = 0; k < kClasses; ++k) to[k * launch.pass[1]] = 0;
  to[0] = end - begin - not_below[0];
  for (int j = 0; j < pivots.num; ++j) {
    to[(2 * j + 1) * launch.pass[1]] = not_below[j] - above[j];
    to[(2 * j + 2) * launch.pass[1]] = above[j] - not_below[j + 1];
  }
}
#endif

// Computes where each run's elements of each class begin.
ST_FN void phase8(const Launch& launch, st_i64 item) {
  ST_SHARED st_i64 sums[ST_THREADS];
  st_i64* const counts = runs_of(launch, item);
  const st_i64 all = kClasses * launch.pass[1], part = (all + ST_THREADS - 1) / ST_THREADS;
  const st_i64 begin = ST_THREAD * part, end = begin + part < all ? begin + part : all;
  st_i64 sum = 0;
  for (st_i64 i = begin; i < end; ++i) sum += counts[i];
  sums[ST_THREAD] = sum;
  ST_SYNC();
  st_i64 before = 0;
  for (int i = 0; i < ST_THREAD; ++i) before += sums[i];
  for (st_i64 i = begin; i < end; ++i) {
    const st_i64 count = counts[i];
    counts[i] = before;
    before += count;
  }
  ST_SYNC();
}

#if ST_CUDA
ST_FN void phase9(const Launch& launch, st_i64 item) {
  const st_i64 number = item / launch.pass[1], run = item % launch.pass[1];
  const st_i64 begin = run * launch.pass[0], end = end_of_run(launch, begin);
  const Row row = row_of(launch, number);
  const Seek* const pivots = seeks_of(launch, number, kDigits % 2);
  const st_i64* const from = runs_of(launch, number) + run;
  st_i64 places[kClasses];
  for (int k = 0; k < kClasses; ++k) places[k] = from[k * launch.pass[1]];
  for (st_i64 i = begin; i < end; ++i) {
    const Entry entry = read(launch, row, i);
    store(row.out + places[class_of(pivots, key_of(entry.key))]++ * launch.ST_LAST.own_strides[0],
          entry);
  }
}
#else
#if ST_VECTORS
// Moves a block's elements to the ends of their classes, by bit masks.
ST_FN ST_512 void move_vectors(const char* from, int some, const RadixKey* keys,
                               const Pivots& pivots, char* to, st_i64* places) {
  typedef RadixKey Moved;  // as large as an element
  typedef Lanes<Moved> L;
  const Moved* const elements = (const Moved*)from;
  Moved* const out = (Moved*)to;
  for (int i = 0; i < some; i += L::kCount) {
    const int left = some - i;
    typename L::Mask rest = left < L::kCount ? first_lanes<Moved>(left) : (typename L::Mask) - 1;
    const typename L::V moved = L::load_some(elements + i, all_lanes<Moved>(0), rest);
    const typename L::V own = load_lanes(keys + i);
    auto move = [&](typename L::Mask mask, int in) {
      if (mask == 0) return;
      const int count = __builtin_popcount(mask);
      L::store_some(out + places[in], L::compressed(moved, mask), first_lanes<Moved>(count));
      places[in] += count;
    };
    for (int j = 0; j < pivots.num; ++j) {
      const typename L::V pivot = all_lanes<Moved>((Moved)pivots.keys[j]);
      const typename L::Mask below = L::below(own, pivot) & rest;
      const typename L::Mask equal = (typename L::Mask) ~L::below(pivot, own) & rest & ~below;
      move(below, 2 * j);
      move(equal, 2 * j + 1);
      rest &= ~(below | equal);
    }
    move(rest, 2 * pivots.num);
  }
}
#endif

ST_FN void phase9(const Launch& launch, st_i64 item) {
  alignas(64) RadixKey keys[kKeyBlock];
  const st_i64 number = item / launch.pass[1], run = item % launch.pass[1];
  const st_i64 begin = run * launch.pass[0], end = end_of_run(launch, begin);
  const st_i64 step = launch.operand0.own_strides[0], out_step = launch.ST_LAST.own_strides[0];
  const Row row = row_of(launch, number);
  const Pivots pivots = pivots_of(launch, number);
  const st_i64* const from = runs_of(launch, number) + run;
  st_i64 places[kClasses];
  for (int k = 0; k < kClasses; ++k) places[k] = from[k * launch.pass[1]];
  for (st_i64 i = begin; i < end; i += kKeyBlock) {
    const int some = end - i < kKeyBlock ? (int)(end - i) : kKeyBlock;
    read_keys(row.in + i * step, step, some, keys);
#if ST_VECTORS
    if (!kIndices && sizeof(T0) >= 4 && step == (st_i64)sizeof(T0) && out_step == step) {
      move_vectors(row.in + i * step, some, keys, pivots, row.out, places);
      continue;
    }
#endif
    int classes[kKeyBlock] = {};
    for (int j = 0; j < pivots.num; ++j) {
      const RadixKey pivot = pivots.keys[j];
      for (int k = 0; k < some; ++k) classes[k] += (keys[k] >= pivot) + (keys[k] > pivot);
    }
    for (int k = 0; k < some; ++k)
      store(row.out + places[classes[k]]++ * out_step, read(launch, row, i + k));
  }
}
#endif
