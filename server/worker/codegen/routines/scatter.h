// Writes values to indexed elements. Operands: values, indices, output (own axes: the indexed ones;
// the loop's other axes are those along which it has a stride). Pass 0 checks the indices. Then
// either pass 4, one item, writes all elements in order; or pass 1 clears a table of pass[0] slots,
// pass 2 enters the last place that writes to each target, and pass 3 writes from these places.
// pass[1]: kHashed, a hash table with a power of two slots; kDirect, a slot per target; kOrders, a
// word per target, for few targets: then pass 2 checks the indices, and pass 5 writes, an item per
// target and each of the pass[2] places elsewhere, targets first with pass[3]. Option 1: indices
// also differ along the loop's other axes.
constexpr bool kAlong = kOption1 != 0;
enum { kHashed = 0, kDirect = 1, kOrders = 2 };

struct Slot {
  st_u64 key;    // the target's key; all ones: free
  st_u64 order;  // 1 + the last place among the indices
};

ST_FN st_u64 key_of(const Launch& launch, const Target& target, st_u64 elsewhere) {
  return kAlong ? elsewhere * (st_u64)st_own_count(launch.ST_LAST) + target.number : target.number;
}
// The target's slot; enters it if absent.
ST_FN Slot* slot_of(const Launch& launch, st_u64 key) {
  Slot* const table = (Slot*)launch.scratch;
  if (launch.pass[1] == kDirect) return table + key;
  const st_u64 mixed = key * 0x9E3779B97F4A7C15ull, mask = (st_u64)launch.pass[0] - 1;
  for (st_u64 i = (mixed ^ mixed >> 32) & mask;; i = (i + 1) & mask) {
    const st_u64 found = st_swap_if(&table[i].key, ~0ull, key);
    if (found == ~0ull || found == key) return table + i;
  }
}
ST_FN void write(const Launch& launch, const Place& place, const Target& target) {
  const T0 value = st_load<T0>(st_at(launch.operand0, place));
  st_store<TLast>(st_at(launch.ST_LAST, place) + target.offset, st_convert<TLast>(value));
}

ST_FN void phase0(const Launch& launch, st_i64 item) {
  Target target;
  st_target(launch, launch.ST_LAST, st_place(launch, item), &target);
}

ST_FN void phase1(const Launch& launch, st_i64 item) {
  if (launch.pass[1] == kOrders) {
    ((st_u64*)launch.scratch)[item] = 0;
  } else {
    ((Slot*)launch.scratch)[item] = Slot{~0ull, 0};
  }
}

ST_FN void phase2(const Launch& launch, st_i64 item) {
  if (launch.fault[0] != 0) return;
  const Place place = st_place(launch, item);
  st_u64 order, elsewhere;
  st_split(launch, place, &order, &elsewhere);
  if (!kAlong && elsewhere != 0) return;
  Target target;
  if (!st_target(launch, launch.ST_LAST, place, &target)) return;
  const st_u64 key = key_of(launch, target, elsewhere);
  st_raise(launch.pass[1] == kOrders ? (st_u64*)launch.scratch + key : &slot_of(launch, key)->order,
           order + 1);
}

ST_FN void phase3(const Launch& launch, st_i64 item) {
  if (launch.fault[0] != 0) return;
  const Place place = st_place(launch, item);
  st_u64 order, elsewhere;
  st_split(launch, place, &order, &elsewhere);
  Target target;
  if (!st_target(launch, launch.ST_LAST, place, &target)) return;
  if (slot_of(launch, key_of(launch, target, elsewhere))->order == order + 1)
    write(launch, place, target);
}

ST_FN void phase4(const Launch& launch, st_i64) {
  if (launch.fault[0] != 0) return;
  for (st_i64 item = 0; item < launch.count; ++item) {
    const Place place = st_place(launch, item);
    Target target;
    if (st_target(launch, launch.ST_LAST, place, &target)) write(launch, place, target);
  }
}

ST_FN void phase5(const Launch& launch, st_i64 item) {
  if (launch.fault[0] != 0) return;
  // Neighbouring items write to the closer targets.
  const st_u64 targets = (st_u64)st_own_count(launch.ST_LAST), all = (st_u64)launch.pass[2];
  const st_u64 elsewhere = launch.pass[3] ? (st_u64)item / targets : (st_u64)item % all;
  const st_u64 number = launch.pass[3] ? (st_u64)item % targets : (st_u64)item / all;
  const st_u64 order =
      ((const st_u64*)launch.scratch)[kAlong ? elsewhere * targets + number : number];
  if (order == 0) return;
  write(launch, st_place_of(launch, order - 1, elsewhere),
        Target{st_own_offset(launch.ST_LAST, (st_i64)number), number});
}
