// Elements of sort.h by radix.h: numbers of up to 64 bits. An item keeps every bit of its element,
// since its digits are made from it in each pass: both zeros are one number, and all NaN are one
// after all others, in either direction. Before this text the emitter writes kRadixKept: the result
// stays at the beginning of the scratch memory.
typedef T0 RadixItem;
constexpr bool kRadixKeeps = false, kRadixPlaces = kIndices, kRadixPut = !kIndices || kTop;
// As KeysTile() in routine_shape.cc.
constexpr int kRadixItems = sizeof(T0) > 4 ? 12 : kRadixPlaces ? 16 : 20;
constexpr int kRadixKeyBits = 8 * (int)sizeof(typename st_stored<T0>::type);

template <bool kWide>
struct RadixKeyOf {
  typedef st_u32 type;
};
template <>
struct RadixKeyOf<true> {
  typedef st_u64 type;
};
typedef RadixKeyOf<(sizeof(T0) > 4)>::type RadixKey;
ST_FN RadixKey radix_infinity(st_f16) { return 0x7C00; }
ST_FN RadixKey radix_infinity(st_bf16) { return 0x7F80; }
template <class T>
ST_FN RadixKey radix_infinity(T) {
  return (RadixKey)st_bits(st_infinity_of((T)0));
}
ST_FN RadixKey radix_bits(st_f16 x) { return x.bits; }
ST_FN RadixKey radix_bits(st_bf16 x) { return x.bits; }
template <class T>
ST_FN RadixKey radix_bits(T x) {
  return (RadixKey)st_bits(x);
}
template <class T>
ST_FN RadixKey radix_key(T x, bool descending) {
  constexpr st_kind kind = st_traits<T>::kind;
  constexpr RadixKey sign = (RadixKey)1 << (kRadixKeyBits - 1), all = sign | (sign - 1);
  RadixKey key = 0;
  if constexpr (kind == ST_BOOL) {
    key = x ? all : 0;
  } else if constexpr (kind == ST_INT) {
    key = (RadixKey)(typename st_traits<T>::as_unsigned)x ^ (st_traits<T>::is_signed ? sign : 0);
  } else {
    const RadixKey bits = radix_bits(x), magnitude = bits & ~sign;
    if (magnitude > radix_infinity(T())) return all;
    key = magnitude == 0 ? sign : bits & sign ? bits ^ all : bits | sign;
  }
  return descending ? key ^ all : key;
}
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
