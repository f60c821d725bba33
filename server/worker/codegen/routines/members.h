// GroupReduce. Operands: groups (own axis), with option 0 values (the same own axis), output (own
// axis: the groups). Programs: value's type to the accumulator's, combination of two, accumulator's
// to the output's. Scalars: what a group without elements has, and without values the one value.
// Passes: those of group.h. Option 1: combining in any grouping is allowed; 2: integers are added,
// and without values, so that a GPU counts (tally.h).
constexpr bool kValues = kOption0 != 0;

ST_FN st_i64 num_elements(const Launch& launch) { return launch.operand0.own_extents[0]; }
template <class T>
ST_FN st_i64 to_group(const Launch& launch, T value, st_i64 groups) {
  const bool beyond = !st_traits<T>::is_signed && (st_u64)value > 0x7FFFFFFFFFFFFFFFull;
  const st_i64 group = beyond ? 0x7FFFFFFFFFFFFFFFll : (st_i64)value;
  if (group >= 0 && group < groups) return group;
  st_note_fault(launch, kIndexOutOfRange, group, groups);
  return groups;
}
ST_FN st_i64 group_of(const Launch& launch, st_i64 i) {
  return to_group(launch, st_load<T0>(launch.operand0.data + i * launch.operand0.own_strides[0]),
                  launch.ST_LAST.own_extents[0]);
}
#if !ST_CUDA
constexpr int kGroupsTogether = 128;
ST_FN void groups_of(const Launch& launch, st_i64 first, int some, st_i64* groups) {
  for (int j = 0; j < some; ++j) groups[j] = group_of(launch, first + j);
}
#endif
template <bool kGiven>
ST_FN Program0 value_of(const Launch& launch, const Place& place, st_i64 i) {
  if constexpr (kGiven) {
    const char* const at = st_at(launch.operand1, place) + i * launch.operand1.own_strides[0];
    return run0(st_convert<Argument0>(st_load<T1>(at)));
  } else {
    return st_load<Program0>(launch.scalars[ST_SCALARS - 1]);
  }
}
ST_FN Program0 element(const Launch& launch, const Place& place, st_i64 i) {
  return value_of<kValues>(launch, place, i);
}
template <class T>
ST_FN T times(T value, st_u64 count) {
  if constexpr (st_traits<T>::kind == ST_INT) {
    return (T)((st_u64)value * count);
  } else {
    return value;
  }
}
ST_FN void store_count(const Launch& launch, st_i64 group, st_u64 count) {
  if (launch.fault[0] != 0) return;
  const Program0 value = st_load<Program0>(launch.scalars[ST_SCALARS - 1]);
  st_store<TLast>(launch.ST_LAST.data + group * launch.ST_LAST.own_strides[0],
                  run2(times(value, count)));
}
