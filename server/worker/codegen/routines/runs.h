// Processes each group of sorted entries in order, after entries.h and radix.h. The user of this
// text defines before it
//   st_i64 num_elsewhere(launch)        number of positions along other axes, done per entry
//   State, begin_run(launch, elsewhere, group), end_run(launch, elsewhere, group, state)
//   Value, run_value(launch, elsewhere, place), run_step(launch, state, value)
// The emitter numbers the phases. short_runs has an item per entry and position elsewhere; it
// processes runs of up to kShortRun entries and lists the longer ones. long_runs processes those,
// each by a block. Their passes have the sort's arguments. The list follows the memory that the
// sort clears; its length, which is cleared too, comes first.
constexpr int kShortRun = 32;

ST_FN st_u64* list_of_runs(const Launch& launch) {
  return radix_memory(launch).published + launch.pass[1] * kRadixBins;
}

ST_FN void short_runs(const Launch& launch, st_i64 item) {
  if (launch.fault[0] != 0) return;
  const st_i64 elsewhere = item % num_elsewhere(launch), first = item / num_elsewhere(launch);
  const st_i64 n = num_entries(launch);
  const RadixRow sorted = radix_row(launch, 0);
  const Index group = sorted.groups[first];
  if (group >= num_groups(launch) || (first > 0 && sorted.groups[first - 1] == group)) return;
  if (first + kShortRun < n && sorted.groups[first + kShortRun] == group) {
    st_u64* const list = list_of_runs(launch);
    if (elsewhere == 0) list[1 + atomicAdd(list, 1ull)] = (st_u64)first;
    return;
  }
  State state = begin_run(launch, elsewhere, (st_i64)group);
  for (st_i64 i = first; i < n && sorted.groups[i] == group; ++i)
    run_step(launch, state, run_value(launch, elsewhere, (st_i64)sorted.places[i]));
  end_run(launch, elsewhere, (st_i64)group, state);
}

// Processes values in order. Reads several before it uses the first.
ST_FN void go_through(const Launch& launch, State& state, const Value* values, int count) {
  constexpr int kAtOnce = 16;
  int k = 0;
  for (; k + kAtOnce <= count; k += kAtOnce) {
    Value some[kAtOnce];
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) some[i] = values[k + i];
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) run_step(launch, state, some[i]);
  }
  for (; k < count; ++k) run_step(launch, state, values[k]);
}

// One position elsewhere per block: all threads fetch values, and one processes them.
ST_FN void run_by_block(const Launch& launch, st_i64 elsewhere, st_i64 first) {
  __shared__ Value fetched[2][ST_THREADS];
  const st_i64 n = num_entries(launch);
  const RadixRow sorted = radix_row(launch, 0);
  const Index group = sorted.groups[first];
  State state;
  if (ST_THREAD == 0) state = begin_run(launch, elsewhere, (st_i64)group);
  int half = 0, count = 0;
  for (st_i64 begin = first;; begin += ST_THREADS, half = 1 - half) {
    const st_i64 i = begin + ST_THREAD;
    const bool own = i < n && sorted.groups[i] == group;
    Value value;
    if (own) value = run_value(launch, elsewhere, (st_i64)sorted.places[i]);
    if (ST_THREAD == 0) go_through(launch, state, fetched[1 - half], count);
    if (own) fetched[half][ST_THREAD] = value;
    count = __syncthreads_count(own);
    if (count == 0) break;
  }
  if (ST_THREAD == 0) end_run(launch, elsewhere, (st_i64)group, state);
  ST_SYNC();
}

// As many positions elsewhere as a block has threads.
ST_FN void run_by_threads(const Launch& launch, st_i64 elsewhere, st_i64 first) {
  constexpr int kAtOnce = 8;
  const st_i64 n = num_entries(launch);
  const RadixRow sorted = radix_row(launch, 0);
  const Index group = sorted.groups[first];
  State state = begin_run(launch, elsewhere, (st_i64)group);
  st_i64 i = first;
  for (; i + kAtOnce <= n && sorted.groups[i + kAtOnce - 1] == group; i += kAtOnce) {
    Value values[kAtOnce];
#pragma unroll
    for (int k = 0; k < kAtOnce; ++k)
      values[k] = run_value(launch, elsewhere, (st_i64)sorted.places[i + k]);
#pragma unroll
    for (int k = 0; k < kAtOnce; ++k) run_step(launch, state, values[k]);
  }
  for (; i < n && sorted.groups[i] == group; ++i)
    run_step(launch, state, run_value(launch, elsewhere, (st_i64)sorted.places[i]));
  end_run(launch, elsewhere, (st_i64)group, state);
}

ST_FN void long_runs(const Launch& launch, st_i64 item) {
  if (launch.fault[0] != 0) return;
  const st_u64* const list = list_of_runs(launch);
  const st_i64 count = (st_i64)list[0], all = num_elsewhere(launch);
  const bool threads = all >= 32;
  const st_i64 parts = threads ? (all + ST_THREADS - 1) / ST_THREADS : all;
  for (st_i64 number = item; number < count * parts; number += launch.items) {
    const st_i64 first = (st_i64)list[1 + number / parts], part = number % parts;
    if (!threads) {
      run_by_block(launch, part, first);
    } else if (part * ST_THREADS + ST_THREAD < all) {
      run_by_threads(launch, part * ST_THREADS + ST_THREAD, first);
    }
  }
}
