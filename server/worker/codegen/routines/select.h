// Elements of given ranks. Operands: input (own axis), ranks (own axis), output (own axis: as many
// as ranks). Options: those of sort.h, all 0. Short rows are sorted, in pass 7, and so are many
// ranks and complex numbers: by sort.h's passes, of which 8 takes from half pass[1]. All else is
// seek.h's.

ST_FN int num_ranks(const Launch& launch) { return (int)launch.ST_LAST.own_extents[0]; }

// The rank in [0, n), or -1 and a fault if it is out of range.
ST_FN st_i64 given_rank(const Launch& launch, const Place& place, st_i64 j) {
  const T1 value = st_load<T1>(st_at(launch.operand1, place) + j * launch.operand1.own_strides[0]);
  const bool beyond = !st_traits<T1>::is_signed && (st_u64)value > 0x7FFFFFFFFFFFFFFFull;
  const st_i64 rank = beyond ? 0x7FFFFFFFFFFFFFFFll : (st_i64)value;
  const st_i64 n = launch.operand0.own_extents[0];
  if (rank >= 0 && rank < n) return rank;
  if (rank < 0 && rank >= -n) return rank + n;
  st_note_fault(launch, kIndexOutOfRange, rank, n);
  return -1;
}
ST_FN st_i64 rank_of(const Launch& launch, st_i64 number, int j) {
  const st_i64 rank = given_rank(launch, st_place(launch, number), j);
  return rank < 0 ? 0 : rank;
}
ST_FN void found(const Launch& launch, st_i64 number, int j, T0 value) {
  st_store<TLast>(row_of(launch, number).out + j * launch.ST_LAST.own_strides[0],
                  st_convert<TLast>(value));
}

#if ST_VECTORS
// Whether a short row's elements were found by their keys. Zeros and NaN cannot be: which of them
// has a rank depends on the row's order.
ST_CALL ST_512 bool select_in_vectors(const Launch& launch, st_i64 item) {
  constexpr st_kind kind = st_traits<T0>::kind;
  constexpr RadixKey sign = (RadixKey)1 << (kRadixKeyBits - 1), all = sign | (sign - 1);
  if (kind == ST_COMPLEX) return false;
  alignas(64) RadixKey a[kTile], b[kTile];
  const Row row = row_of(launch, item);
  const Place place = st_place(launch, item);
  const st_i64 n = launch.operand0.own_extents[0];
  const int num = num_ranks(launch);
  read_keys(row.in, launch.operand0.own_strides[0], n, a);
  sort_wanted(a, b, n, [&](st_i64 begin, st_i64 end) {
    bool any = num > kMostRanks;
    for (int j = 0; j < num && !any; ++j) {
      const st_i64 rank = given_rank(launch, place, j);
      any = rank >= begin && rank < end;
    }
    return any;
  });
  for (int j = 0; j < num && kind != ST_INT && kind != ST_BOOL; ++j) {
    const st_i64 rank = given_rank(launch, place, j);
    if (rank >= 0 && (a[rank] == all || a[rank] == sign || a[rank] == sign - 1)) return false;
  }
  for (int j = 0; j < num; ++j) {
    const st_i64 rank = given_rank(launch, place, j);
    if (rank >= 0) found(launch, item, j, value_of<T0>(a[rank]));
  }
  return true;
}
#endif

ST_FN void phase7(const Launch& launch, st_i64 item) {
#if ST_VECTORS
  if (select_in_vectors(launch, item)) return;
#endif
  ST_SHARED Entry tiles[2][kTile];
  const Entry* const sorted = sort_entries(launch, row_of(launch, item), nullptr, 0,
                                           (int)launch.operand0.own_extents[0], tiles);
  const Place place = st_place(launch, item);
  for (int j = ST_THREAD; j < num_ranks(launch); j += ST_THREADS) {
    const st_i64 rank = given_rank(launch, place, j);
    if (rank >= 0) found(launch, item, j, sorted[rank].key);
  }
  ST_SYNC();
}

ST_FN void phase8(const Launch& launch, st_i64 item) {
  const st_i64 number = item / num_ranks(launch), j = item % num_ranks(launch);
  const st_i64 rank = given_rank(launch, st_place(launch, number), j);
  if (rank < 0) return;
  const st_i64 n = launch.operand0.own_extents[0];
  found(launch, number, (int)j, entries_of(launch, launch.pass[1], number, n)[rank].key);
}
