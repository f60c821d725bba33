// GroupReduce. Operands: groups (own axis), with option 0 values (the same own axis), output (own
// axis: the groups). Programs: value's type to the accumulator's, combination of two, accumulator's
// to the output's. Scalars: the result of an empty group, and without values the one value. Passes:
// those of group.h. Option 1: any grouping is allowed. Option 2: integers are added, and without
// values, so that a GPU counts (tally.h).
constexpr bool kValues = kOption0 != 0;

ST_FN st_i64 num_elements(const Launch& launch) { return launch.operand0.own_extents[0]; }
template <class T>
ST_FN st_i64 to_index(T value) {
  const bool beyond = !st_traits<T>::is_signed && (st_u64)value > 0x7FFFFFFFFFFFFFFFull;
  return beyond ? 0x7FFFFFFFFFFFFFFFll : (st_i64)value;
}
ST_FN st_i64 to_group(st_i64 index, st_i64 groups) {
  return index >= 0 && index < groups ? index : groups;
}
ST_FN st_i64 group_of(const Launch& launch, st_i64 i) {
  const st_i64 groups = launch.ST_LAST.own_extents[0];
  const st_i64 index =
      to_index(st_load<T0>(launch.operand0.data + i * launch.operand0.own_strides[0]));
  if (to_group(index, groups) == groups) st_note_fault(launch, kIndexOutOfRange, index, groups);
  return to_group(index, groups);
}
#if !ST_CUDA
constexpr int kGroupsTogether = 128;
ST_FN void groups_of(const Launch& launch, st_i64 first, int some, st_i64* groups) {
  const st_i64 count = launch.ST_LAST.own_extents[0], step = launch.operand0.own_strides[0];
  const char* const from = launch.operand0.data + first * step;
  int bad = 0;
  if (step == (st_i64)sizeof(T0)) {
    for (int j = 0; j < some; ++j) {
      groups[j] = to_group(to_index(st_load<T0>(from + j * sizeof(T0))), count);
      bad |= groups[j] == count;
    }
  } else {
    for (int j = 0; j < some; ++j) {
      groups[j] = to_group(to_index(st_load<T0>(from + j * step)), count);
      bad |= groups[j] == count;
    }
  }
  for (int j = 0; j < some && bad != 0; ++j) group_of(launch, first + j);  // notes the fault
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
