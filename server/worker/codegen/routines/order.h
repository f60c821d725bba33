// The order of sorted values: NaN after all others, in either direction.

template <class T>
ST_FN bool st_before(T a, T b, bool descending) {
  constexpr st_kind kind = st_traits<T>::kind;
  if constexpr (kind == ST_HALF) {
    return st_before(st_to_float(a), st_to_float(b), descending);
  } else if constexpr (kind == ST_FLOAT) {
    if (b != b) return a == a;
    return descending ? a > b : a < b;
  } else if constexpr (kind == ST_COMPLEX) {
    const bool a_nan = st_isnan(a), b_nan = st_isnan(b);
    if (!a_nan && !b_nan) return descending ? st_less(b, a) : st_less(a, b);
    if (descending || !a_nan || !b_nan) return !a_nan;
    // As in NumPy: NaN only in the imaginary part comes before NaN in the real part.
    const bool a_real = a.re == a.re, b_real = b.re == b.re;
    if (a_real != b_real) return a_real;
    if (a_real) return a.re < b.re;
    return a.im < b.im || (a.im == a.im && b.im != b.im);
  } else {
    return descending ? b < a : a < b;
  }
}
