// Insertion positions of values in a sorted row. Operands: the row (own axis), values, output.
// Programs: the row's type and the values' to the type of comparison. Option 0: after equal
// elements. Pass: 0; a CPU handles 64 values per item, interleaved so that their reads overlap.
ST_FN Program0 sorted_element(const Launch& launch, st_i64 i) {
  return run0(st_load<T0>(launch.operand0.data + i * launch.operand0.own_strides[0]));
}
ST_FN bool lies_further(Program0 element, Program1 value) {
  return kOption0 != 0 ? !st_before(value, element, false) : st_before(element, value, false);
}

#if ST_CUDA
ST_FN void phase0(const Launch& launch, st_i64 item) {
  const Place place = st_place(launch, item);
  const Program1 value = run1(st_load<T1>(st_at(launch.operand1, place)));
  st_i64 low = 0, high = launch.operand0.own_extents[0];
  while (low < high) {
    const st_i64 middle = low + (high - low) / 2;
    if (lies_further(sorted_element(launch, middle), value)) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  st_store<TLast>(st_at(launch.ST_LAST, place), st_cast<TLast>(low));
}
#else
constexpr int kTogether = 64;  // as kSearchedTogether in routine_shape.cc
ST_FN void phase0(const Launch& launch, st_i64 item) {
  const st_i64 first = item * kTogether, n = launch.operand0.own_extents[0];
  const int some = launch.count - first < kTogether ? (int)(launch.count - first) : kTogether;
  Program1 values[kTogether];
  Index low[kTogether];
  for (int j = 0; j < some; ++j)
    values[j] = run1(st_load<T1>(st_at(launch.operand1, st_place(launch, first + j))));
  st_bisect_together<kTogether>(some, n, low, [&](int j, Index i) {
    return lies_further(sorted_element(launch, (st_i64)i), values[j]);
  });
  for (int j = 0; j < some; ++j)
    st_store<TLast>(st_at(launch.ST_LAST, st_place(launch, first + j)),
                    st_cast<TLast>((st_i64)low[j]));
}
#endif
