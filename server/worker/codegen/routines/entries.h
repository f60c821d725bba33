// Sorts entries by group on a GPU. The sort (radix.h, which follows) leaves each entry's group,
// then each entry's place, at the beginning of the scratch memory. The user of this text defines
// before it
//   st_i64 num_entries(launch), num_groups(launch)
//   st_i64 entry_group(launch, i)       of element i; num_groups or more: in none

typedef Index RadixItem;
// As kEntriesTile in group_shape.cc.
constexpr int kRadixItems = 16;
constexpr bool kRadixKeeps = true, kRadixPlaces = true, kRadixPut = true;
ST_FN int radix_digit(const Launch&, Index item, int digit) {
  return (int)(item >> (8 * digit)) & 255;
}
struct RadixRow {
  Index *groups, *places;
};
ST_FN st_i64 radix_rows(const Launch&) { return 1; }
ST_FN st_i64 radix_length(const Launch& launch) { return num_entries(launch); }
ST_FN RadixRow radix_row(const Launch& launch, st_i64) {
  Index* const groups = (Index*)launch.scratch;
  return RadixRow{groups, groups + num_entries(launch)};
}
ST_FN Index radix_read(const Launch& launch, const RadixRow&, st_i64 i) {
  const st_i64 group = entry_group(launch, i), groups = num_groups(launch);
  return (Index)(group < groups ? group : groups);
}
ST_FN void radix_put(const Launch&, const RadixRow& row, st_i64 i, Index group) {
  row.groups[i] = group;
}
ST_FN void radix_put_place(const Launch&, const RadixRow& row, st_i64 i, Index place) {
  row.places[i] = place;
}
