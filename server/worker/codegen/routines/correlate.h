// Sums of products of one row with another at each offset. Operands: the row, the other (own axes),
// output (own axis). Programs: both types to the accumulator's, a product, a sum of two, the
// accumulator's type to the output's. Scalar 0: the other's start in the first row for output 0,
// which may be negative. Scalar 1: an empty sum. An item is kResults results. Pass: 0.
typedef Program0 Acc;
#if ST_CUDA
constexpr int kResults = 4;
#else
constexpr int kResults = 32;
#endif

// With contiguous elements the stride is a constant, and the compiler vectorizes the loop.
template <bool kDense>
ST_FN Acc left_at(const Launch& launch, st_i64 i) {
  const st_i64 stride =
      kDense ? (st_i64)sizeof(typename st_stored<T0>::type) : launch.operand0.own_strides[0];
  return run0(st_load<T0>(launch.operand0.data + i * stride));
}
template <bool kDense>
ST_FN void correlate(const Launch& launch, st_i64 first, int count) {
  const st_i64 n = launch.operand0.own_extents[0], m = launch.operand1.own_extents[0];
  const st_i64 shift = st_load<st_i64>(launch.scalars[0]) + first;
  Acc sums[kResults];
#pragma unroll
  for (int k = 0; k < kResults; ++k) sums[k] = st_load<Acc>(launch.scalars[1]);
  for (st_i64 j = 0; j < m; ++j) {
    const Acc other = run1(st_load<T1>(launch.operand1.data + j * launch.operand1.own_strides[0]));
    const st_i64 begin = shift + j;
    if (begin >= 0 && begin + kResults <= n) {
#pragma unroll
      for (int k = 0; k < kResults; ++k)
        sums[k] = run3(sums[k], run2(left_at<kDense>(launch, begin + k), other));
      continue;
    }
    // At the ends only the overlap counts, even if other elements are infinite.
    for (int k = 0; k < kResults; ++k) {
      if (begin + k < 0 || begin + k >= n) continue;
      sums[k] = run3(sums[k], run2(left_at<kDense>(launch, begin + k), other));
    }
  }
  for (int k = 0; k < count; ++k) {
    st_store<TLast>(launch.ST_LAST.data + (first + k) * launch.ST_LAST.own_strides[0],
                    run4(sums[k]));
  }
}

ST_FN void phase0(const Launch& launch, st_i64 item) {
  const st_i64 first = item * kResults, left = launch.ST_LAST.own_extents[0] - first;
  const int count = left < kResults ? (int)left : kResults;
  if (launch.operand0.own_strides[0] == (st_i64)sizeof(typename st_stored<T0>::type)) {
    correlate<true>(launch, first, count);
  } else {
    correlate<false>(launch, first, count);
  }
}
