// Where values belong in a sorted row. Operands: the row (own axis), values, output. Programs: the
// row's type and the values' to the one in which they are compared. Option 0: after equal elements.
// Pass: 0.

ST_FN void phase0(const Launch& launch, st_i64 item) {
  const Place place = st_place(launch, item);
  const Program1 value = run1(st_load<T1>(st_at(launch.operand1, place)));
  st_i64 low = 0, high = launch.operand0.own_extents[0];
  while (low < high) {
    const st_i64 middle = low + (high - low) / 2;
    const Program0 element =
        run0(st_load<T0>(launch.operand0.data + middle * launch.operand0.own_strides[0]));
    const bool further =
        kOption0 != 0 ? !st_before(value, element, false) : st_before(element, value, false);
    if (further) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  st_store<TLast>(st_at(launch.ST_LAST, place), st_cast<TLast>(low));
}
