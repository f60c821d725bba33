// Sorts items by their keys in one thread of a processor; stable, with a pass per digit of 8 bits,
// from the lowest. A digit that is equal in all items is skipped. The user of this text defines
// item_key(item) before it.
template <class Item>
ST_FN Item* sort_digits(Item* a, Item* b, st_i64 n) {
  typedef decltype(item_key(Item())) Key;
  constexpr int kDigits = (int)sizeof(Key);
  st_i64 counts[kDigits][256] = {};
  for (st_i64 i = 0; i < n; ++i) {
    const Key key = item_key(a[i]);
#pragma unroll
    for (int digit = 0; digit < kDigits; ++digit) ++counts[digit][key >> (8 * digit) & 255];
  }
  for (int digit = 0; digit < kDigits; ++digit) {
    st_i64* const places = counts[digit];
    if (places[item_key(a[0]) >> (8 * digit) & 255] == n) continue;
    st_i64 before = 0;
    for (int i = 0; i < 256; ++i) {
      const st_i64 count = places[i];
      places[i] = before;
      before += count;
    }
    for (st_i64 i = 0; i < n; ++i) b[places[item_key(a[i]) >> (8 * digit) & 255]++] = a[i];
    Item* const sorted = b;
    b = a;
    a = sorted;
  }
  return a;
}
