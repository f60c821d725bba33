// group.h on a GPU, by sorting the elements by group: the definitions that entries.h and runs.h
// require. Groups that may be combined in parts use segments.h, others runs.h.

struct State {
  Part part;
};
typedef Acc Value;
ST_FN st_i64 num_entries(const Launch& launch) { return num_elements(launch); }
ST_FN st_i64 entry_group(const Launch& launch, st_i64 i) { return group_of(launch, i); }
ST_FN st_i64 num_elsewhere(const Launch& launch) { return launch.count; }
ST_FN State begin_run(const Launch&, st_i64, st_i64) {
  State state;
  state.part.some = false;
  return state;
}
ST_FN void end_run(const Launch& launch, st_i64 elsewhere, st_i64 group, const State& state) {
  store_group(launch, st_place(launch, elsewhere), group, state.part);
}
ST_FN Acc run_value(const Launch& launch, st_i64 elsewhere, st_i64 place) {
  return element(launch, st_place(launch, elsewhere), place);
}
ST_FN void run_step(const Launch&, State& state, Acc value) { add(state.part, value); }
