// at.h on a GPU: the definitions that entries.h and runs.h require. A run is the indices of one
// target.

struct State {
  TLast element;
};
typedef Program0 Value;
ST_FN st_i64 num_entries(const Launch& launch) {
  st_i64 count = 1;
#pragma unroll
  for (int axis = 0; axis < kRank; ++axis)
    count *= launch.ST_LAST.strides[axis] == 0 ? launch.extents[axis] : 1;
  return count;
}
ST_FN st_i64 num_groups(const Launch& launch) { return st_own_count(launch.ST_LAST); }
ST_FN st_i64 num_elsewhere(const Launch& launch) { return launch.count / num_entries(launch); }
ST_FN st_i64 entry_group(const Launch& launch, st_i64 i) {
  Target target;
  if (!st_target(launch, launch.ST_LAST, st_place_of(launch, (st_u64)i, 0), &target))
    return num_groups(launch);
  return (st_i64)target.number;
}

ST_FN char* target_of(const Launch& launch, st_i64 elsewhere, st_i64 group) {
  return st_at(launch.ST_LAST, st_place_of(launch, 0, (st_u64)elsewhere)) +
         st_own_offset(launch.ST_LAST, group);
}
ST_FN State begin_run(const Launch& launch, st_i64 elsewhere, st_i64 group) {
  return State{st_load<TLast>(target_of(launch, elsewhere, group))};
}
ST_FN void end_run(const Launch& launch, st_i64 elsewhere, st_i64 group, const State& state) {
  st_store<TLast>(target_of(launch, elsewhere, group), state.element);
}
ST_FN Program0 run_value(const Launch& launch, st_i64 elsewhere, st_i64 place) {
  return value_at<kOption2>(launch, st_place_of(launch, (st_u64)place, (st_u64)elsewhere));
}
ST_FN void run_step(const Launch&, State& state, Program0 value) {
  state.element = applied(state.element, value);
}
