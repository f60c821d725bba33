// Sorts rows along an axis. Operands: input and output, with that axis as their own. Option 0:
// descending. Option 1: the output gets the elements' indices. Option 2: TopK, with an operand for
// values and one for indices, of the requested length. Option 3: the operands between input and
// output order equal elements. Pass 0 sorts tiles. Pass 1 merges neighbours of pass[0] elements
// each, pass[3] results per item, pass[2] items per row. pass[1]: the half of the scratch memory
// that is read (merge) or written (tiles), and 2 for the last pass, which writes the output. For
// TopK, pass 0 keeps the first pass[2] of each tile, and pass 2 sorts tiles of these, pass[0]
// entries per row, of which it keeps the same number; pass[3] is a row's room in either half.
constexpr bool kDescending = kOption0 != 0, kIndices = kOption1 != 0, kTop = kOption2 != 0;
constexpr bool kMoreKeys = kOption3 != 0;

template <bool kWithPlace>
struct EntryOf {
  T0 key;
};
template <>
struct EntryOf<true> {
  T0 key;
  Index place;
};
typedef EntryOf<kIndices> Entry;
ST_FN void set_place(EntryOf<false>&, st_i64) {}
ST_FN void set_place(EntryOf<true>& entry, st_i64 place) { entry.place = (Index)place; }
ST_FN void store(char* to, const EntryOf<false>& entry) {
  st_store<TLast>(to, st_convert<TLast>(entry.key));
}
ST_FN void store(char* to, const EntryOf<true>& entry) {
  st_store<TLast>(to, st_cast<TLast>((st_i64)entry.place));
}

struct Row {
  const char* in;
  char *values, *out;
  Place place;
};
ST_FN Row row_of(const Launch& launch, st_i64 number) {
  const Place place = st_place(launch, number);
  return Row{st_at(launch.operand0, place), st_at(launch.operand1, place),
             st_at(launch.ST_LAST, place), place};
}

template <bool kMore, class E>
ST_FN bool before_by_keys(const Launch& launch, const Row& row, const E& a, const E& b) {
  if constexpr (kMore) {
    if (st_before(a.key, b.key, kDescending)) return true;
    if (st_before(b.key, a.key, kDescending)) return false;
#define ST_KEY(k)                                                  \
  {                                                                \
    const char* const keys = st_at(launch.operand##k, row.place);  \
    const st_i64 stride = launch.operand##k.own_strides[0];        \
    const T##k x = st_load<T##k>(keys + (st_i64)a.place * stride); \
    const T##k y = st_load<T##k>(keys + (st_i64)b.place * stride); \
    if (st_before(x, y, kDescending)) return true;                 \
    if (st_before(y, x, kDescending)) return false;                \
  }
    ST_MIDDLE(ST_KEY)
    return false;
  } else if constexpr (kTop) {
    // A GPU gathers elements in another order than that of their places (top.h).
    if (st_before(a.key, b.key, kDescending)) return true;
    return a.place < b.place && !st_before(b.key, a.key, kDescending);
  } else {
    return st_before(a.key, b.key, kDescending);
  }
}
ST_FN bool before(const Launch& launch, const Row& row, const Entry& a, const Entry& b) {
  return before_by_keys<kMoreKeys>(launch, row, a, b);
}
ST_FN Entry read(const Launch& launch, const Row& row, st_i64 i) {
  Entry entry;
  entry.key = st_load<T0>(row.in + i * launch.operand0.own_strides[0]);
  set_place(entry, i);
  return entry;
}
template <bool kBoth>
ST_FN void put_key(const Launch& launch, const Row& row, st_i64 i, const Entry& entry) {
  if constexpr (kBoth)
    st_store<T1>(row.values + i * launch.operand1.own_strides[0], st_convert<T1>(entry.key));
}
ST_FN void put(const Launch& launch, const Row& row, st_i64 i, const Entry& entry) {
  if (kTop && i >= launch.ST_LAST.own_extents[0]) return;
  put_key<kTop>(launch, row, i, entry);
  store(row.out + i * launch.ST_LAST.own_strides[0], entry);
}
