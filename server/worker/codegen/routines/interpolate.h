// Linear interpolation between known values. Operands: wanted positions, known positions (own axis,
// ascending), known values (own axis), output. Programs: the types of the first three to double,
// double to the output's. Options 0 and 1: scalar 0 is the value before the first known position,
// scalar 1 the value after the last. Pass: 0.

// As in NumPy: if the line from the near end gives NaN, use the far end.
ST_FN double on_line(double slope, double x, double x0, double y0, double x1, double y1) {
  double y = slope * (x - x0) + y0;
  if (y == y) return y;
  y = slope * (x - x1) + y1;
  return y != y && y0 == y1 ? y0 : y;
}
ST_FN double between(double x, double x0, double y0, double x1, double y1) {
  return on_line((y1 - y0) / (x1 - x0), x, x0, y0, x1, y1);
}
template <class T>
ST_FN st_complex<T> between(double x, double x0, st_complex<T> y0, double x1, st_complex<T> y1) {
  const double inverse = 1.0 / (x1 - x0);
  return st_complex<T>{on_line((y1.re - y0.re) * inverse, x, x0, y0.re, x1, y1.re),
                       on_line((y1.im - y0.im) * inverse, x, x0, y0.im, x1, y1.im)};
}
ST_FN double as_result(double x, const double*) { return x; }
template <class T>
ST_FN st_complex<T> as_result(double x, const st_complex<T>*) {
  return st_complex<T>{x, 0};
}

ST_FN double known_at(const Launch& launch, st_i64 i) {
  return run1(st_load<T1>(launch.operand1.data + i * launch.operand1.own_strides[0]));
}
ST_FN Program2 value_at(const Launch& launch, st_i64 i) {
  return run2(st_load<T2>(launch.operand2.data + i * launch.operand2.own_strides[0]));
}
ST_FN Program2 function_at(const Launch& launch, double x) {
  const st_i64 n = launch.operand1.own_extents[0];
  if (x != x) return as_result(x, (const Program2*)nullptr);
  if (x > known_at(launch, n - 1))
    return kOption1 != 0 ? st_load<Program2>(launch.scalars[1]) : value_at(launch, n - 1);
  if (x < known_at(launch, 0))
    return kOption0 != 0 ? st_load<Program2>(launch.scalars[0]) : value_at(launch, 0);
  // The last known position that is not beyond x.
  st_i64 low = 0, high = n;
  while (high - low > 1) {
    const st_i64 middle = low + (high - low) / 2;
    if (known_at(launch, middle) <= x) {
      low = middle;
    } else {
      high = middle;
    }
  }
  const double x0 = known_at(launch, low);
  if (low == n - 1 || x0 == x) return value_at(launch, low);
  return between(x, x0, value_at(launch, low), known_at(launch, low + 1),
                 value_at(launch, low + 1));
}

ST_FN void phase0(const Launch& launch, st_i64 item) {
  const Place place = st_place(launch, item);
  const double x = run0(st_load<T0>(st_at(launch.operand0, place)));
  st_store<TLast>(st_at(launch.ST_LAST, place), st_convert<TLast>(function_at(launch, x)));
}
