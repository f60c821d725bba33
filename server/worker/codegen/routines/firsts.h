// Finds the first pass[2] elements of tiles of pass[0] elements; a row has pass[1] tiles. Writes
// them to the output for one tile, else to the scratch memory; a last pass finds the first ones of
// these. pass[3]: that pass.
constexpr int kFirstsRoom = 4096, kFirstsBlock = 128;
ST_FN SortItem* firsts_of(const Launch& launch, st_i64 number) {
  return (SortItem*)launch.scratch + number * launch.pass[1] * launch.pass[2];
}
ST_FN void key_firsts(const Launch& launch, st_i64 item) {
  alignas(64) SortItem held[kFirstsRoom + kFirstsBlock], room[kFirstsRoom + kFirstsBlock];
  alignas(64) SortItem block[kFirstsBlock];
  const st_i64 n = launch.operand0.own_extents[0], tiles = launch.pass[1], k = launch.pass[2];
  const bool again = launch.pass[3] != 0;
  const st_i64 number = again ? item : item / tiles, tile = again ? 0 : item % tiles;
  const st_i64 begin = tile * launch.pass[0];
  const Row row = row_of(launch, number);
  const st_i64 in_last = n - (tiles - 1) * launch.pass[0];
  const st_i64 all = again ? (tiles - 1) * k + (in_last < k ? in_last : k)
                           : (n - begin < launch.pass[0] ? n - begin : launch.pass[0]);
  st_i64 count = 0;
  bool full = false;
  decltype(item_key(held[0])) worst = 0;
  auto shrink = [&] {
    const SortItem* const sorted = sort_items(held, room, count);
    if (sorted != held) {
      for (st_i64 i = 0; i < count; ++i) held[i] = sorted[i];
    }
    full = count >= k;
    if (full) count = k;
    if (full) worst = item_key(held[k - 1]);
  };
  for (st_i64 i = 0; i < all; i += kFirstsBlock) {
    const st_i64 some = all - i < kFirstsBlock ? all - i : kFirstsBlock;
    if (again) {
      for (st_i64 j = 0; j < some; ++j) block[j] = firsts_of(launch, number)[i + j];
    } else {
      read_items(launch, row, begin + i, some, KeyRange{}, block);
    }
    unsigned any = !full;
    for (st_i64 j = 0; j < some; ++j) any |= item_key(block[j]) < worst;
    if (!any) continue;
    for (st_i64 j = 0; j < some; ++j) {
      if (!full || item_key(block[j]) < worst) held[count++] = block[j];
    }
    if (count >= kFirstsRoom) shrink();
  }
  shrink();
  if (again || tiles == 1) return write_items(launch, row, 0, held, count);
  SortItem* const to = firsts_of(launch, number) + tile * k;
  for (st_i64 i = 0; i < count; ++i) to[i] = held[i];
}
