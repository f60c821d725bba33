// Sorts elements of sort.h by radix.h: numbers of up to 64 bits. An item keeps all bits of its
// element, and each pass computes its digits from these. Both zeros are one number, and all NaN are
// one after all others, in either direction. The emitter writes kRadixKept before this text: the
// result stays at the beginning of the scratch memory.
typedef T0 RadixItem;
constexpr bool kRadixKeeps = false, kRadixPlaces = kIndices, kRadixPut = !kIndices || kTop;
// As KeysTile() in order_shape.cc.
constexpr int kRadixItems = sizeof(T0) > 4 ? 12 : kRadixPlaces ? 16 : 24;
ST_FN int radix_digit(const Launch&, T0 item, int digit) {
  return (int)(radix_key(item, kDescending) >> (8 * digit)) & 255;
}

struct RadixRow {
  Row row;
  Entry* kept;
};
ST_FN st_i64 radix_rows(const Launch& launch) { return launch.count; }
ST_FN st_i64 radix_length(const Launch& launch) { return launch.operand0.own_extents[0]; }
ST_FN RadixRow radix_row(const Launch& launch, st_i64 number) {
  return RadixRow{row_of(launch, number), (Entry*)launch.scratch + number * radix_length(launch)};
}
ST_FN T0 radix_read(const Launch& launch, const RadixRow& row, st_i64 i) {
  return st_load<T0>(row.row.in + i * launch.operand0.own_strides[0]);
}
ST_FN void radix_put(const Launch& launch, const RadixRow& row, st_i64 i, T0 item) {
  Entry entry;
  entry.key = item;
  if constexpr (kRadixKept) {
    row.kept[i] = entry;
  } else if constexpr (kTop) {
    if (i < launch.ST_LAST.own_extents[0]) put_key<kTop>(launch, row.row, i, entry);
  } else if constexpr (!kIndices) {
    put(launch, row.row, i, entry);
  }
}
ST_FN void radix_put_place(const Launch& launch, const RadixRow& row, st_i64 i, Index place) {
  if (kTop && i >= launch.ST_LAST.own_extents[0]) return;
  st_store<TLast>(row.row.out + i * launch.ST_LAST.own_strides[0], st_cast<TLast>((st_i64)place));
}
