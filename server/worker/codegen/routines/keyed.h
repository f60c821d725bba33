// Sorts sort.h's rows on a CPU by unsigned keys of 32 or 64 bits in the elements' order. The
// emitter numbers the phases. key_tiles sorts tiles of pass[0] elements; a row has pass[1] of them.
// key_merges merges neighbours of pass[0] items each, pass[3] results per item, pass[2] items per
// row. key_rare and key_restore are for floats with bits that keys do not distinguish, or order
// differently from the row. pass[1] of key_merges: the half of the scratch memory to read, and 2
// when the result is the output. A short row of one tile needs no scratch memory and is sorted into
// the output.
constexpr st_i64 kStackItems = 8192;  // kKeyedOnStack in order_shape.cc

ST_FN T0 row_value(const Launch& launch, const Row& row, st_i64 i) {
  return st_load<T0>(row.in + i * launch.operand0.own_strides[0]);
}
// The least key of a row, and the number of low bits of key differences that do not fit an item.
struct KeyRange {
  st_u64 least;
  int shift;
};
// Returns whether the elements contain a rare value.
ST_CALL bool read_items(const Launch& launch, const Row& row, st_i64 begin, st_i64 count,
                        const KeyRange& range, SortItem* to) {
  const st_i64 step = launch.operand0.own_strides[0];
  const char* const from = row.in + begin * step;
  unsigned rare = 0;
  auto read = [&](st_i64 stride) {
#pragma clang loop vectorize(enable)
    for (st_i64 i = 0; i < count; ++i) {
      const T0 value = st_load<T0>(from + i * stride);
      const SortKey key = sort_key(value);
      set_item(to[i], kLongPlaces ? (SortKey)((key - range.least) >> range.shift) : key, begin + i);
      if (!kIndices) rare |= is_rare(value);
    }
  };
  if (step == (st_i64)sizeof(T0)) {
    read(sizeof(T0));
  } else {
    read(step);
  }
  return rare != 0;
}
ST_FN void write_item(char* to, const SortItem& item) {
  if constexpr (kIndices) {
    st_store<TLast>(to, st_cast<TLast>((st_i64)item_place(item)));
  } else {
    st_store<TLast>(to, st_convert<TLast>(sort_value<T0>((SortKey)item_key(item))));
  }
}
ST_CALL void write_items(const Launch& launch, const Row& row, st_i64 place, const SortItem* items,
                         st_i64 count) {
  const st_i64 step = launch.ST_LAST.own_strides[0];
  if constexpr (kTop) {
    const st_i64 most = launch.ST_LAST.own_extents[0] - place;
    for (st_i64 i = 0; i < count && i < most; ++i) {
      const st_i64 from = (st_i64)item_place(items[i]);
      st_store<T1>(row.values + (place + i) * launch.operand1.own_strides[0],
                   st_convert<T1>(row_value(launch, row, from)));
      st_store<TLast>(row.out + (place + i) * step, st_cast<TLast>(from));
    }
  } else {
    char* const to = row.out + place * step;
    auto write = [&](st_i64 stride) {
#pragma clang loop vectorize(enable)
      for (st_i64 i = 0; i < count; ++i) write_item(to + i * stride, items[i]);
    };
    if (step == (st_i64)sizeof(TLast)) {
      write(sizeof(TLast));
    } else {
      write(step);
    }
  }
}

// Collects the zeros and NaNs of a row in its order. Returns their number.
template <class T>
ST_CALL st_i64 collect_rare(const Launch& launch, const Row& row, T* to) {
  const st_i64 n = launch.operand0.own_extents[0];
  st_i64 count = 0;
  if constexpr (is_float<T>()) {
    for (st_i64 i = 0; i < n; ++i) {
      const T value = row_value(launch, row, i);
      if (is_zero_or_nan(value)) to[count++] = value;
    }
  }
  return count;
}
// Writes them to their positions in the sorted output.
template <class T>
ST_CALL void restore_rare(const Launch& launch, const Row& row, const T* rare, st_i64 count) {
  if constexpr (is_float<T>() && !kIndices) {
    const st_i64 n = launch.operand0.own_extents[0], step = launch.ST_LAST.own_strides[0];
    st_i64 num_nan = 0;
    for (st_i64 i = 0; i < count; ++i)
      num_nan += (radix_bits(rare[i]) & ~kSortSign) > radix_infinity(T());
    // Index of the first zero.
    st_i64 low = 0, high = n - num_nan;
    while (low < high) {
      const st_i64 middle = low + (high - low) / 2;
      const T value = st_load<T>(row.out + middle * step);
      const bool negative = (radix_bits(value) & kSortSign) != 0;
      if (!is_zero_or_nan(value) && negative != kDescending) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    st_i64 nan = n - num_nan;
    for (st_i64 i = 0; i < count; ++i) {
      const bool is_nan = (radix_bits(rare[i]) & ~kSortSign) > radix_infinity(T());
      st_store<TLast>(row.out + (is_nan ? nan++ : low++) * step, st_convert<TLast>(rare[i]));
    }
  }
}

// Counting sort, for keys with few values.
template <int kBits>
ST_FN void sort_by_counts(SortItem* items, st_i64 n) {
  if constexpr (!kIndices && kBits <= 16) {
    st_u32 counts[1 << kBits] = {};
    for (st_i64 i = 0; i < n; ++i) ++counts[item_key(items[i]) & kSortAll];
    SortItem* to = items;
    for (int key = 0; key < 1 << kBits; ++key) {
      for (st_u32 i = 0; i < counts[key]; ++i) set_item(to[i], (SortKey)key, 0);
      to += counts[key];
    }
  }
}

#if ST_VECTORS
ST_FN void sort_in_vectors(KeyWithPlace*, KeyWithPlace*, st_i64) {}
ST_FN void merge_in_vectors(const KeyWithPlace*, st_i64, const KeyWithPlace*, st_i64,
                            KeyWithPlace*) {}
template <class Key>
ST_FN ST_512 void merge_in_vectors(const Key* a, st_i64 a_count, const Key* b, st_i64 b_count,
                                   Key* to) {
  merge_keys<Key>(a, a_count, b, b_count, to);
}
template <class Key>
ST_FN ST_512 void sort_in_vectors(Key* a, Key* b, st_i64 n) {
  sort_keys<Key>(a, b, n);
}
#endif
template <class Item>
ST_FN void sort_by_insertion(Item* items, st_i64 n) {
  for (st_i64 i = 1; i < n; ++i) {
    const Item item = items[i];
    st_i64 j = i;
    for (; j > 0 && item_key(item) < item_key(items[j - 1]); --j) items[j] = items[j - 1];
    items[j] = item;
  }
}
// Sorts a's items with b as work memory; returns the one with the result.
ST_CALL SortItem* sort_items(SortItem* a, SortItem* b, st_i64 n) {
  constexpr bool kFewValues = !kIndices && kRadixKeyBits <= 16;
  if (kFewValues && n >= (kRadixKeyBits == 8 ? 64 : 1 << 15)) {
    sort_by_counts<kRadixKeyBits <= 16 ? kRadixKeyBits : 1>(a, n);
    return a;
  }
#if ST_VECTORS
  if constexpr (sizeof(SortItem) <= 8) {
    sort_in_vectors(a, b, n);
    return a;
  }
#endif
  if (n <= 48) {
    sort_by_insertion(a, n);
    return a;
  }
  return sort_digits(a, b, n);
}

// A row's items in half 0 or 1 of the scratch memory.
ST_FN SortItem* items_of(const Launch& launch, st_i64 half, st_i64 number) {
  return (SortItem*)launch.scratch +
         (half * launch.count + number) * launch.operand0.own_extents[0];
}
// A byte per tile: whether it has a rare value.
ST_FN st_u8* rare_tiles(const Launch& launch) { return (st_u8*)items_of(launch, 2, 0); }

// For argsort by 64-bit keys. pass[3]: offset of the tiles' ranges in the scratch memory, two words
// each.
ST_FN st_u64* tile_ranges(const Launch& launch, st_i64 number) {
  return (st_u64*)(launch.scratch + launch.pass[3]) + 2 * number * launch.pass[1];
}
ST_CALL void find_range(const Launch& launch, const Row& row, st_i64 begin, st_i64 end,
                        st_u64* range) {
  st_u64 least = ~(st_u64)0, greatest = 0;
  for (st_i64 i = begin; i < end; ++i) {
    const st_u64 key = sort_key(row_value(launch, row, i));
    least = key < least ? key : least;
    greatest = key > greatest ? key : greatest;
  }
  range[0] = least;
  range[1] = greatest;
}
ST_FN KeyRange range_between(st_u64 least, st_u64 greatest) {
  const int bits = 64 - __builtin_clzll((greatest - least) | 1);
  return KeyRange{least, bits > 32 ? bits - 32 : 0};
}
ST_FN KeyRange range_of_keys(const Launch& launch, const Row& row) {
  st_u64 range[2];
  find_range(launch, row, 0, launch.operand0.own_extents[0], range);
  return range_between(range[0], range[1]);
}
ST_FN KeyRange range_of_tiles(const Launch& launch, st_i64 number) {
  const st_u64* const ranges = tile_ranges(launch, number);
  st_u64 least = ranges[0], greatest = ranges[1];
  for (st_i64 i = 1; i < launch.pass[1]; ++i) {
    least = ranges[2 * i] < least ? ranges[2 * i] : least;
    greatest = ranges[2 * i + 1] > greatest ? ranges[2 * i + 1] : greatest;
  }
  return range_between(least, greatest);
}
ST_FN bool starts_alike(st_u64 a, st_u64 b) { return (a ^ b) >> 32 == 0; }
// Sorts runs of items with equal first bits by the other bits of their keys.
ST_CALL void settle_equals(const Launch& launch, const Row& row, const KeyRange& range,
                           st_u64* items, st_i64 n, st_u64* room) {
#if ST_VECTORS
  if (range.shift == 0) return;
  const st_u64 rest = ((st_u64)1 << range.shift) - 1;
  for (st_i64 i = 0; i + 1 < n;) {
    if (!starts_alike(items[i], items[i + 1])) {
      ++i;
      continue;
    }
    const st_u64 first = items[i];
    st_i64 end = i;
    for (; end < n && starts_alike(items[end], first); ++end) {
      const st_u64 place = (st_u32)items[end];
      const st_u64 key = sort_key(row_value(launch, row, (st_i64)place));
      room[end] = ((key - range.least) & rest) << 32 | place;
    }
    if (end - i <= 8) {
      sort_by_insertion(room + i, end - i);
    } else {
      sort_keys<st_u64>(room + i, items + i, end - i);
    }
    for (st_i64 j = i; j < end; ++j) items[j] = room[j];
    i = end;
  }
#endif
}

ST_CALL void sort_row(const Launch& launch, const Row& row, SortItem* a, SortItem* b) {
  const st_i64 n = launch.operand0.own_extents[0];
  KeyRange range = {};
  if (kLongPlaces) range = range_of_keys(launch, row);
  const bool rare = read_items(launch, row, 0, n, range, a);
  SortItem* const sorted = sort_items(a, b, n);
  if (kLongPlaces) settle_equals(launch, row, range, (st_u64*)sorted, n, (st_u64*)b);
  if (!kSortsFloats || !rare) return write_items(launch, row, 0, sorted, n);
  // The output may be the input.
  T0* const kept = (T0*)(sorted == a ? b : a);
  const st_i64 count = collect_rare(launch, row, kept);
  write_items(launch, row, 0, sorted, n);
  restore_rare(launch, row, kept, count);
}
ST_CALL void sort_row_on_stack(const Launch& launch, const Row& row) {
  alignas(64) SortItem a[kStackItems], b[kStackItems];
  sort_row(launch, row, a, b);
}

// Rows that are adjacent in memory, such as columns of a matrix: read and written together, a cache
// line for all of them.
constexpr int kColumns = 16;
// kColumnBytes in order_shape.cc
constexpr st_i64 kColumnItems = (288 << 10) / (st_i64)sizeof(SortItem);
ST_FN void key_columns(const Launch& launch, st_i64 item) {
  alignas(64) SortItem items[kColumnItems], room[kColumnItems / kColumns];
  // maps columns to different cache sets
  const st_i64 n = launch.operand0.own_extents[0], pitch = n + kColumns;
  const st_i64 first = item * kColumns, step = launch.operand0.own_strides[0];
  const int some = launch.count - first < kColumns ? (int)(launch.count - first) : kColumns;
  Row rows[kColumns];
  KeyRange ranges[kColumns];
  bool rare[kColumns] = {};
  for (int k = 0; k < some; ++k) {
    rows[k] = row_of(launch, first + k);
    if (kLongPlaces) ranges[k] = range_of_keys(launch, rows[k]);
  }
  for (st_i64 i = 0; i < n; ++i) {
    for (int k = 0; k < some; ++k) {
      const T0 value = st_load<T0>(rows[k].in + i * step);
      const SortKey key = sort_key(value);
      set_item(items[k * pitch + i],
               kLongPlaces ? (SortKey)((key - ranges[k].least) >> ranges[k].shift) : key, i);
      if (!kIndices) rare[k] = rare[k] || is_rare(value);
    }
  }
  for (int k = 0; k < some; ++k) {
    SortItem* const own = items + k * pitch;
    SortItem* const sorted = sort_items(own, room, n);
    if (kLongPlaces) settle_equals(launch, rows[k], ranges[k], (st_u64*)sorted, n, (st_u64*)room);
    for (st_i64 i = 0; sorted != own && i < n; ++i) own[i] = sorted[i];
    if (!rare[k]) continue;
    const st_i64 count = collect_rare(launch, rows[k], (T0*)room);
    write_items(launch, rows[k], 0, own, n);
    restore_rare(launch, rows[k], (const T0*)room, count);
  }
  const st_i64 out_step = launch.ST_LAST.own_strides[0];
  for (st_i64 i = 0; i < n; ++i) {
    for (int k = 0; k < some; ++k) {
      if (!rare[k]) write_item(rows[k].out + i * out_step, items[k * pitch + i]);
    }
  }
}

ST_FN void key_tiles(const Launch& launch, st_i64 item) {
  const st_i64 n = launch.operand0.own_extents[0], tiles = launch.pass[1];
  const st_i64 number = item / tiles, tile = item % tiles, begin = tile * launch.pass[0];
  const Row row = row_of(launch, number);
  if (tiles == 1) {
    if (n <= kStackItems) {
      sort_row_on_stack(launch, row);
    } else {
      sort_row(launch, row, items_of(launch, 0, number), items_of(launch, 1, number));
    }
    return;
  }
  const st_i64 count = n - begin < launch.pass[0] ? n - begin : launch.pass[0];
  SortItem* const a = items_of(launch, 0, number) + begin;
  KeyRange range = {};
  if (kLongPlaces) range = range_of_tiles(launch, number);
  const bool rare = read_items(launch, row, begin, count, range, a);
  if (kSortsFloats && !kIndices) rare_tiles(launch)[item] = rare;
  const SortItem* const sorted = sort_items(a, items_of(launch, 1, number) + begin, count);
  if (sorted != a) {
    for (st_i64 i = 0; i < count; ++i) a[i] = sorted[i];
  }
}

// Number of the first `place` results of merging a and b that come from a; a's items precede equal
// ones.
ST_FN st_i64 items_path(const SortItem* a, st_i64 a_count, const SortItem* b, st_i64 b_count,
                        st_i64 place) {
  st_i64 low = place > b_count ? place - b_count : 0, high = place < a_count ? place : a_count;
  while (low < high) {
    const st_i64 middle = (low + high) / 2;
    if (item_key(b[place - 1 - middle]) < item_key(a[middle])) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return low;
}
ST_CALL void merge_items(const SortItem* a, st_i64 a_count, const SortItem* b, st_i64 b_count,
                         SortItem* to) {
#if ST_VECTORS
  if constexpr (sizeof(SortItem) <= 8) {
    merge_in_vectors(a, a_count, b, b_count, to);
    return;
  }
#endif
  const SortItem *const a_end = a + a_count, *const b_end = b + b_count;
  while (a < a_end && b < b_end) {
    const bool from_b = item_key(*b) < item_key(*a);
    *to++ = *(from_b ? b : a);
    a += !from_b;
    b += from_b;
  }
  while (a < a_end) *to++ = *a++;
  while (b < b_end) *to++ = *b++;
}

constexpr st_i64 kMergedItems = 4096;  // kKeyedGroup in order_shape.cc

ST_FN void key_merges(const Launch& launch, st_i64 item) {
  alignas(64) SortItem merged[kMergedItems];
  const st_i64 n = launch.operand0.own_extents[0], width = launch.pass[0];
  const st_i64 number = item / launch.pass[2], half = launch.pass[1] & 1;
  const st_i64 place = item % launch.pass[2] * kMergedItems;
  // A group lies within one pair.
  const st_i64 pair = place / (2 * width) * (2 * width);
  const SortItem* const a = items_of(launch, half, number) + pair;
  const st_i64 a_count = n - pair < width ? n - pair : width;
  const SortItem* const b = a + a_count;
  const st_i64 rest = n - pair - a_count, b_count = rest < width ? rest : width;
  const st_i64 begin = place - pair, limit = begin + kMergedItems;
  const st_i64 end = limit < a_count + b_count ? limit : a_count + b_count;
  const st_i64 i = items_path(a, a_count, b, b_count, begin);
  const st_i64 i_end = items_path(a, a_count, b, b_count, end);
  const bool last = (launch.pass[1] & 2) != 0 && !kLongPlaces;
  SortItem* const to = last ? merged : items_of(launch, 1 - half, number) + place;
  merge_items(a + i, i_end - i, b + (begin - i), (end - i_end) - (begin - i), to);
  if (last) write_items(launch, row_of(launch, number), place, merged, end - begin);
}

// Memory for rare values until the last merge, which may overwrite the input. pass[0]: the half
// that this merge does not read.
ST_FN T0* kept_rare(const Launch& launch, st_i64 number) {
  return (T0*)items_of(launch, launch.pass[0], number);
}
ST_FN bool has_rare(const Launch& launch, st_i64 number) {
  const st_u8* const tiles = rare_tiles(launch) + number * launch.pass[1];
  bool rare = false;
  for (st_i64 i = 0; i < launch.pass[1]; ++i) rare = rare || tiles[i] != 0;
  return rare;
}
ST_FN st_i64* num_kept(const Launch& launch, st_i64 number) {
  return (st_i64*)(launch.scratch + launch.pass[2]) + number;
}
ST_FN void key_rare(const Launch& launch, st_i64 item) {
  *num_kept(launch, item) =
      has_rare(launch, item) ? collect_rare(launch, row_of(launch, item), kept_rare(launch, item))
                             : 0;
}
ST_FN void key_restore(const Launch& launch, st_i64 item) {
  const st_i64 count = *num_kept(launch, item);
  if (count > 0) restore_rare(launch, row_of(launch, item), kept_rare(launch, item), count);
}

// Argsort by 64-bit keys, in four arrays of the scratch memory.
ST_FN void key_ranges(const Launch& launch, st_i64 item) {
  if (!kLongPlaces) return;
  const st_i64 n = launch.operand0.own_extents[0], number = item / launch.pass[1];
  const st_i64 tile = item % launch.pass[1], begin = tile * launch.pass[0];
  const st_i64 end = n - begin < launch.pass[0] ? n : begin + launch.pass[0];
  find_range(launch, row_of(launch, number), begin, end, tile_ranges(launch, number) + 2 * tile);
}
// Per row pass[2] groups: the items that begin in it, and those equal to its last.
ST_FN void key_places(const Launch& launch, st_i64 item) {
  if (!kLongPlaces) return;
  const st_i64 n = launch.operand0.own_extents[0], number = item / launch.pass[2];
  const st_i64 place = item % launch.pass[2] * kMergedItems;
  const st_u64* const from = (const st_u64*)items_of(launch, launch.pass[0], number);
  auto begins = [&](st_i64 i) { return i <= 0 || i >= n || !starts_alike(from[i - 1], from[i]); };
  st_i64 begin = place, end = n - place < kMergedItems ? n : place + kMergedItems;
  while (begin < end && !begins(begin)) ++begin;
  if (begin == end) return;
  while (!begins(end)) ++end;
  st_u64* const items = (st_u64*)items_of(launch, 2, number) + begin;
  st_u64* const room = (st_u64*)items_of(launch, 3, number) + begin;
  for (st_i64 i = 0; i < end - begin; ++i) items[i] = from[begin + i];
  const Row row = row_of(launch, number);
  settle_equals(launch, row, range_of_tiles(launch, number), items, end - begin, room);
  write_items(launch, row, begin, (const SortItem*)items, end - begin);
}
