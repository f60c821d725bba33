// A stable merge sort: blocks sort tiles, then threads merge neighbours. The user of this text
// defines before it
//   Entry                        the type of sorted entries
//   Row                          data of a row for reading, comparing and writing
//   before(launch, row, a, b)    the order of entries
//   read(launch, row, i)         the row's entry i
//   put(launch, row, i, entry)   entry i of the result
constexpr int kTile = 1024;
#if ST_CUDA
constexpr int kRun = 4;
#else
constexpr int kRun = 32;
constexpr int kFew = 32;
#endif

// Number of the first `place` results of merging a and b that come from a; a's entries precede
// equal ones.
template <class I>
ST_FN I merge_path(const Launch& launch, const Row& row, const Entry* a, I a_count, const Entry* b,
                   I b_count, I place) {
  I low = place > b_count ? place - b_count : 0, high = place < a_count ? place : a_count;
  while (low < high) {
    const I middle = (low + high) / 2;
    if (before(launch, row, b[place - 1 - middle], a[middle])) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return low;
}

// Sorts entries [begin, begin + count) of `from`, or of the row if that is null; returns one of the
// tiles. Called by a block.
ST_FN const Entry* sort_entries(const Launch& launch, const Row& row, const Entry* from,
                                st_i64 begin, int count, Entry (*tiles)[kTile]) {
  for (int i = ST_THREAD; i < count; i += ST_THREADS)
    tiles[0][i] = from != nullptr ? from[begin + i] : read(launch, row, begin + i);
  ST_SYNC();
  // Short runs, each by one thread.
  for (int start = ST_THREAD * kRun; start < count; start += ST_THREADS * kRun) {
    const int end = start + kRun < count ? start + kRun : count;
    for (int i = start + 1; i < end; ++i) {
      const Entry entry = tiles[0][i];
      int j = i;
      for (; j > start && before(launch, row, entry, tiles[0][j - 1]); --j)
        tiles[0][j] = tiles[0][j - 1];
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
      int i = merge_path(launch, row, a, a_count, b, b_count, start - pair), j = start - pair - i;
      const int end = start + kRun < count ? start + kRun : count;
      for (int place = start; place < end; ++place) {
        const bool take_b = j < b_count && (i >= a_count || before(launch, row, b[j], a[i]));
        tiles[1 - now][place] = take_b ? b[j++] : a[i++];
      }
    }
    ST_SYNC();
  }
  return tiles[now];
}

// Sorts like sort_entries. Writes the first `keep` entries to `to`, from `to_begin` on, or to the
// result if that is null. Called by a block.
ST_FN void sort_tile(const Launch& launch, const Row& row, const Entry* from, st_i64 begin,
                     int count, st_i64 keep, Entry* to, st_i64 to_begin) {
#if !ST_CUDA
  // If few entries are kept, most entries of a long row need one comparison.
  if (keep <= kFew) {
    Entry first[kFew];
    int kept = 0;
    for (int i = 0; i < count; ++i) {
      const Entry entry = from != nullptr ? from[begin + i] : read(launch, row, begin + i);
      if (kept == keep && !before(launch, row, entry, first[kept - 1])) continue;
      int j = kept < keep ? kept++ : kept - 1;
      for (; j > 0 && before(launch, row, entry, first[j - 1]); --j) first[j] = first[j - 1];
      first[j] = entry;
    }
    for (int i = 0; i < kept; ++i) {
      if (to == nullptr) {
        put(launch, row, to_begin + i, first[i]);
      } else {
        to[to_begin + i] = first[i];
      }
    }
    return;
  }
#endif
  ST_SHARED Entry tiles[2][kTile];
  const Entry* const sorted = sort_entries(launch, row, from, begin, count, tiles);
  for (int i = ST_THREAD; i < count && i < keep; i += ST_THREADS) {
    if (to == nullptr) {
      put(launch, row, to_begin + i, sorted[i]);
    } else {
      to[to_begin + i] = sorted[i];
    }
  }
  ST_SYNC();
}

// Writes results [place, end) of merging neighbours of `width` entries each, n in all, to `merged`,
// or to the result if that is null. Called by a thread.
ST_FN void merge_group(const Launch& launch, const Row& row, const Entry* entries, st_i64 n,
                       st_i64 width, st_i64 place, st_i64 end, Entry* merged) {
  if (end > n) end = n;
  // A group lies within one pair: both are powers of two.
  const st_i64 pair = place / (2 * width) * (2 * width);
  const Entry* const a = entries + pair;
  const st_i64 a_count = n - pair < width ? n - pair : width;
  const Entry* const b = a + a_count;
  const st_i64 rest = n - pair - a_count, b_count = rest < width ? rest : width;
  st_i64 i = merge_path(launch, row, a, a_count, b, b_count, place - pair), j = place - pair - i;
  for (; place < end; ++place) {
    const bool take_b = j < b_count && (i >= a_count || before(launch, row, b[j], a[i]));
    const Entry entry = take_b ? b[j++] : a[i++];
    if (merged == nullptr) {
      put(launch, row, place, entry);
    } else {
      merged[place] = entry;
    }
  }
}
