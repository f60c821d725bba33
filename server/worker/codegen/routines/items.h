// Items that keyed.h moves: elements as ordered unsigned keys, with or without their indices.
typedef RadixKey SortKey;
constexpr SortKey kSortSign = (SortKey)1 << (kRadixKeyBits - 1);
constexpr SortKey kSortAll = kSortSign | (kSortSign - 1);
template <class T>
ST_FN constexpr bool is_float() {
  return st_traits<T>::kind == ST_FLOAT || st_traits<T>::kind == ST_HALF;
}
constexpr bool kSortsFloats = is_float<T0>();

// Without indices, values are recomputed from their keys: -0 comes before +0.
template <class T>
ST_FN SortKey sort_key(T x) {
  if constexpr (kIndices || !is_float<T>()) {
    return radix_key(x, kDescending);
  } else {
    const SortKey key = plain_key(x);
    return kDescending && key != kSortAll ? key ^ kSortAll : key;
  }
}
ST_FN st_f16 sort_float(SortKey bits, const st_f16*) { return st_f16{(st_u16)bits}; }
ST_FN st_bf16 sort_float(SortKey bits, const st_bf16*) { return st_bf16{(st_u16)bits}; }
ST_FN float sort_float(SortKey bits, const float*) { return st_float_of((st_u32)bits); }
ST_FN double sort_float(SortKey bits, const double*) { return st_double_of((st_u64)bits); }
template <class T>
ST_FN T sort_value(SortKey key) {
  if (kDescending) key ^= kSortAll;
  if constexpr (st_traits<T>::kind == ST_BOOL) {
    return key != 0;
  } else if constexpr (st_traits<T>::kind == ST_INT) {
    return (T)(typename st_traits<T>::as_unsigned)(key ^ (st_traits<T>::is_signed ? kSortSign : 0));
  } else {
    return sort_float(key & kSortSign ? key ^ kSortSign : key ^ kSortAll, (const T*)nullptr);
  }
}
// Whether the key does not determine the value.
template <class T>
ST_FN bool is_rare(T x) {
  if constexpr (is_float<T>()) {
    const SortKey bits = radix_bits(x);
    return bits == kSortSign || (bits & ~kSortSign) > radix_infinity(T());
  } else {
    return false;
  }
}
template <class T>
ST_FN bool is_zero_or_nan(T x) {
  const SortKey magnitude = radix_bits(x) & ~kSortSign;
  return magnitude == 0 || magnitude > radix_infinity(T());
}

// An item is a key; or a key of 32 bits with its index in the lower half; or a key and its index.
// Where vectors sort (long.h), an index and the first 32 differing bits of the row's keys stand for
// the latter.
constexpr bool kLongPlaces = ST_VECTORS && kIndices && !kTop && sizeof(T0) > 4;
struct KeyWithPlace {
  st_u64 key;
  Index place;
};
template <bool kPlaced, bool kLong>
struct SortItemOf {
  typedef SortKey type;
};
template <>
struct SortItemOf<true, false> {
  typedef st_u64 type;
};
template <>
struct SortItemOf<true, true> {
  typedef KeyWithPlace type;
};
typedef SortItemOf<kIndices, (sizeof(T0) > 4 && !kLongPlaces)>::type SortItem;
ST_FN st_u32 item_key(st_u32 item) { return item; }
ST_FN st_u64 item_key(st_u64 item) { return item; }
ST_FN st_u64 item_key(const KeyWithPlace& item) { return item.key; }
ST_FN void set_item(st_u32& item, SortKey key, st_i64) { item = (st_u32)key; }
ST_FN void set_item(st_u64& item, SortKey key, st_i64 place) {
  item = kIndices ? (st_u64)key << 32 | (st_u64)place : (st_u64)key;
}
ST_FN void set_item(KeyWithPlace& item, SortKey key, st_i64 place) {
  item.key = key;
  item.place = (Index)place;
}
ST_FN Index item_place(st_u32) { return 0; }
ST_FN Index item_place(st_u64 item) { return (Index)(st_u32)item; }
ST_FN Index item_place(const KeyWithPlace& item) { return item.place; }
