// Number, mean and sum of squared distances from the mean of elements. Two of them are combined by
// the formulas of T. F. Chan, G. H. Golub and R. J. LeVeque, "Algorithms for Computing the Sample
// Variance: Analysis and Recommendations" (1983). The mean is an element, the pivot, plus an
// offset: an element's square of its distance from the mean is at most the sum of all of them, so
// the offset is at most sqrt(count) standard deviations, however large the mean is. So the error
// does not grow with the mean, as that of sums of squares does.

template <class T>
struct st_moments {
  T pivot, offset;
  decltype(st_real(T())) squares;
  st_i64 count;  // 0: the other members are undefined
};

template <class T>
ST_FN T st_squared_size(T x) {
  return x * x;
}
template <class T>
ST_FN T st_squared_size(st_complex<T> z) {
  return z.re * z.re + z.im * z.im;
}
template <class T>
ST_FN T st_scaled(T x, T factor) {
  return x * factor;
}
template <class T>
ST_FN st_complex<T> st_scaled(st_complex<T> z, T factor) {
  return {z.re * factor, z.im * factor};
}

template <class T>
ST_FN st_moments<T> st_moments_of(T value) {
  return {value, T(), 0, 1};
}
template <class T>
ST_FN st_moments<T> st_combine_moments(const st_moments<T>& a, const st_moments<T>& b) {
  typedef decltype(st_real(T())) real;
  if (a.count == 0) return b;
  if (b.count == 0) return a;
  const real share = (real)b.count / (real)(a.count + b.count);
  const T distance = st_add(st_subtract(b.pivot, a.pivot), st_subtract(b.offset, a.offset));
  const real between = st_squared_size(distance) * ((real)a.count * share);
  return {a.pivot, st_add(a.offset, st_scaled(distance, share)), a.squares + b.squares + between,
          a.count + b.count};
}

// The sum of squared distances; NaN where the mean is not finite.
template <class T>
ST_FN auto st_squares_of(const st_moments<T>& all) {
  return all.squares + st_squared_size(st_subtract(all.offset, all.offset));
}

// Sums by halves.
template <int N, class T>
ST_FN T st_sum_by_halves(const T* values) {
  if constexpr (N == 1) {
    return values[0];
  } else {
    return st_add(st_sum_by_halves<N / 2>(values), st_sum_by_halves<N - N / 2>(values + N / 2));
  }
}

// Elements, each with a count of 1, or 0 if it is not selected, in two passes over registers.
template <int N, class T>
ST_FN st_moments<T> st_moments_together(const st_moments<T>* elements) {
  typedef decltype(st_real(T())) real;
  T pivot = elements[0].pivot;
  int count = 0;
#pragma unroll
  for (int k = 0; k < N; ++k) {
    if (count == 0) pivot = elements[k].pivot;
    count += (int)elements[k].count;
  }
  if (count == 0) return {pivot, T(), 0, 0};
  T rest[N];
#pragma unroll
  for (int k = 0; k < N; ++k)
    rest[k] = elements[k].count ? st_subtract(elements[k].pivot, pivot) : T();
  const T offset = st_scaled(st_sum_by_halves<N>(rest), 1 / (real)count);
  real squares[N];
#pragma unroll
  for (int k = 0; k < N; ++k)
    squares[k] = elements[k].count ? st_squared_size(st_subtract(rest[k], offset)) : 0;
  return {pivot, offset, st_sum_by_halves<N>(squares), count};
}

// `count` values in two passes, kLanes at a time; overwrites them.
template <int kLanes, class T>
ST_FN st_moments<T> st_moments_of_run(T* values, st_i64 count) {
  typedef decltype(st_real(T())) real;
  if (count == 0) return {T(), T(), 0, 0};
  const T pivot = values[0];
  for (st_i64 i = 0; i < count; ++i) values[i] = st_subtract(values[i], pivot);
  T sums[kLanes] = {};
  st_i64 i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (int k = 0; k < kLanes; ++k) sums[k] = st_add(sums[k], values[i + k]);
  }
  for (int k = 0; i + k < count; ++k) sums[k] = st_add(sums[k], values[i + k]);
  const T offset = st_scaled(st_sum_by_halves<kLanes>(sums), 1 / (real)count);
  real squares[kLanes] = {};
  for (i = 0; i + kLanes <= count; i += kLanes) {
    for (int k = 0; k < kLanes; ++k)
      squares[k] += st_squared_size(st_subtract(values[i + k], offset));
  }
  for (int k = 0; i + k < count; ++k)
    squares[k] += st_squared_size(st_subtract(values[i + k], offset));
  return {pivot, offset, st_sum_by_halves<kLanes>(squares), count};
}
