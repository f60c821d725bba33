// Operands: values, indices, output (own axes: those that are indexed; the loop's other axes are
// those along which it has a stride). Passes: 0 finds faults, 1 clears the table of pass[0] + 1
// slots, 2 enters who writes last to each target, 3 lets these write. Option 1: indices differ
// along the loop's other axes too.
constexpr bool kAlong = kOption1 != 0;

struct Slot {
  st_u64 key;    // the target's; all ones: free
  st_u64 order;  // 1 + the greatest place among the indices
};

// The place's number along the axes of indices, and along the others.
ST_FN void split(const Launch& launch, const Place& place, st_u64* among_indices,
                 st_u64* elsewhere) {
  *among_indices = *elsewhere = 0;
#pragma unroll
  for (int axis = 0; axis < kRank; ++axis) {
    const bool of_indices = launch.ST_LAST.strides[axis] == 0;
    st_u64& number = of_indices ? *among_indices : *elsewhere;
    number = number * (st_u64)launch.extents[axis] + (st_u64)place.at[axis];
  }
}
ST_FN st_u64 key_of(const Launch& launch, const Target& target, st_u64 elsewhere) {
  return kAlong ? elsewhere * (st_u64)st_own_count(launch.ST_LAST) + target.number : target.number;
}
ST_FN st_u64 first_slot(const Launch& launch, st_u64 key) {
  key *= 0x9E3779B97F4A7C15ull;
  return (key ^ key >> 32) & (st_u64)launch.pass[0];
}

ST_FN void phase0(const Launch& launch, st_i64 item) {
  Target target;
  st_target(launch, launch.ST_LAST, st_place(launch, item), &target);
}

ST_FN void phase1(const Launch& launch, st_i64 item) {
  ((Slot*)launch.scratch)[item] = Slot{~0ull, 0};
}

ST_FN void phase2(const Launch& launch, st_i64 item) {
  if (launch.fault[0] != 0) return;
  const Place place = st_place(launch, item);
  st_u64 order, elsewhere;
  split(launch, place, &order, &elsewhere);
  if (!kAlong && elsewhere != 0) return;
  Target target;
  if (!st_target(launch, launch.ST_LAST, place, &target)) return;
  Slot* const table = (Slot*)launch.scratch;
  const st_u64 key = key_of(launch, target, elsewhere);
  for (st_u64 slot = first_slot(launch, key);; slot = (slot + 1) & (st_u64)launch.pass[0]) {
    const st_u64 found = st_swap_if(&table[slot].key, ~0ull, key);
    if (found != ~0ull && found != key) continue;
    st_raise(&table[slot].order, order + 1);
    return;
  }
}

ST_FN void phase3(const Launch& launch, st_i64 item) {
  if (launch.fault[0] != 0) return;
  const Place place = st_place(launch, item);
  st_u64 order, elsewhere;
  split(launch, place, &order, &elsewhere);
  Target target;
  if (!st_target(launch, launch.ST_LAST, place, &target)) return;
  const Slot* const table = (const Slot*)launch.scratch;
  const st_u64 key = key_of(launch, target, elsewhere);
  st_u64 slot = first_slot(launch, key);
  while (table[slot].key != key) slot = (slot + 1) & (st_u64)launch.pass[0];
  if (table[slot].order != order + 1) return;
  const T0 value = st_load<T0>(st_at(launch.operand0, place));
  st_store<TLast>(st_at(launch.ST_LAST, place) + target.offset, st_convert<TLast>(value));
}
