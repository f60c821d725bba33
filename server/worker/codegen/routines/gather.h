// Elements by indices. Operands: input (own axes: the indexed ones), indices, output. Pass: 0.

ST_FN void phase0(const Launch& launch, st_i64 item) {
  const Place place = st_place(launch, item);
  Target target;
  if (!st_target(launch, launch.operand0, place, &target)) return;
  const T0 value = st_load<T0>(st_at(launch.operand0, place) + target.offset);
  st_store<TLast>(st_at(launch.ST_LAST, place), st_convert<TLast>(value));
}
