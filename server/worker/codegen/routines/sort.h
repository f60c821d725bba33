// A stable merge sort of the rows along an axis. Operands: input and output, whose own axis it is.
// Option 0: descending; 1: the output takes the places where the elements were. Passes: 0 sorts
// tiles; 1 merges neighbours, pass[0] elements each, pass[3] results an item, pass[2] items a row.
// pass[1]: the half of the scratch memory that is read (merge) or written (tiles), and 2 when this
// is the last pass, which writes the output.
constexpr bool kDescending = kOption0 != 0, kIndices = kOption1 != 0;
constexpr int kTile = 1024;
#if ST_CUDA
constexpr int kRun = 4;
#else
constexpr int kRun = 32;
#endif

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

ST_FN bool before(const Entry& a, const Entry& b) { return st_before(a.key, b.key, kDescending); }

// How many of the first `place` results of merging a and b come from a, which goes first among
// equals.
template <class I>
ST_FN I merge_path(const Entry* a, I a_count, const Entry* b, I b_count, I place) {
  I low = place > b_count ? place - b_count : 0, high = place < a_count ? place : a_count;
  while (low < high) {
    const I middle = (low + high) / 2;
    if (before(b[place - 1 - middle], a[middle])) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return low;
}

ST_FN char* output_row(const Launch& launch, st_i64 row) {
  return st_at(launch.ST_LAST, st_place(launch, row));
}
ST_FN void put(const Launch& launch, char* row, st_i64 i, const Entry& entry) {
  store(row + i * launch.ST_LAST.own_strides[0], entry);
}
// Half 0 or 1 of the scratch memory.
ST_FN Entry* half_of(const Launch& launch, st_i64 half) {
  return (Entry*)launch.scratch + half * launch.count * launch.operand0.own_extents[0];
}

ST_FN void phase0(const Launch& launch, st_i64 item) {
  ST_SHARED Entry tiles[2][kTile];
  const st_i64 n = launch.operand0.own_extents[0], num_tiles = (n + kTile - 1) / kTile;
  const st_i64 row = item / num_tiles, begin = item % num_tiles * kTile;
  const int count = n - begin < kTile ? (int)(n - begin) : kTile;
  const char* const from =
      st_at(launch.operand0, st_place(launch, row)) + begin * launch.operand0.own_strides[0];
  for (int i = ST_THREAD; i < count; i += ST_THREADS) {
    tiles[0][i].key = st_load<T0>(from + i * launch.operand0.own_strides[0]);
    set_place(tiles[0][i], begin + i);
  }
  ST_SYNC();
  // Short runs, each by one thread.
  for (int start = ST_THREAD * kRun; start < count; start += ST_THREADS * kRun) {
    const int end = start + kRun < count ? start + kRun : count;
    for (int i = start + 1; i < end; ++i) {
      const Entry entry = tiles[0][i];
      int j = i;
      for (; j > start && before(entry, tiles[0][j - 1]); --j) tiles[0][j] = tiles[0][j - 1];
      tiles[0][j] = entry;
    }
  }
  ST_SYNC();
  int now = 0;
  for (int width = kRun; width < count; width *= 2, now = 1 - now) {
    for (int start = ST_THREAD * kRun; start < count; start += ST_THREADS * kRun) {
      const int pair = start / (2 * width) * (2 * width);
      const Entry* const a = tiles[now] + pair;
      const int a_count = count - pair < width ? count - pair : width;
      const Entry* const b = a + a_count;
      const int rest = count - pair - a_count, b_count = rest < width ? rest : width;
      int i = merge_path(a, a_count, b, b_count, start - pair), j = start - pair - i;
      const int end = start + kRun < count ? start + kRun : count;
      for (int to = start; to < end; ++to) {
        const bool take_b = j < b_count && (i >= a_count || before(b[j], a[i]));
        tiles[1 - now][to] = take_b ? b[j++] : a[i++];
      }
    }
    ST_SYNC();
  }
  char* const output = output_row(launch, row);
  Entry* const scratch = half_of(launch, launch.pass[1] & 1) + row * n + begin;
  for (int i = ST_THREAD; i < count; i += ST_THREADS) {
    if (launch.pass[1] & 2) {
      put(launch, output, begin + i, tiles[now][i]);
    } else {
      scratch[i] = tiles[now][i];
    }
  }
  ST_SYNC();
}

ST_FN void phase1(const Launch& launch, st_i64 item) {
  const st_i64 n = launch.operand0.own_extents[0], width = launch.pass[0], group = launch.pass[3];
  const st_i64 row = item / launch.pass[2];
  const st_i64 from_half = launch.pass[1] & 1;
  const bool last = (launch.pass[1] & 2) != 0;
  const Entry* const entries = half_of(launch, from_half) + row * n;
  Entry* const merged = half_of(launch, 1 - from_half) + row * n;
  char* const output = output_row(launch, row);
  st_i64 to = item % launch.pass[2] * group;
  const st_i64 end = to + group < n ? to + group : n;
  // A group lies within one pair: both are powers of two.
  const st_i64 pair = to / (2 * width) * (2 * width);
  const Entry* const a = entries + pair;
  const st_i64 a_count = n - pair < width ? n - pair : width;
  const Entry* const b = a + a_count;
  const st_i64 rest = n - pair - a_count, b_count = rest < width ? rest : width;
  st_i64 i = merge_path(a, a_count, b, b_count, to - pair), j = to - pair - i;
  for (; to < end; ++to) {
    const bool take_b = j < b_count && (i >= a_count || before(b[j], a[i]));
    const Entry entry = take_b ? b[j++] : a[i++];
    if (last) {
      put(launch, output, to, entry);
    } else {
      merged[to] = entry;
    }
  }
}
