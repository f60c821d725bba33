// Complex functions, with C99's special values where NumPy has them. Formulas after W. Kahan,
// "Branch cuts for complex elementary functions" (1987).

template <class T>
ST_FN st_complex<T> st_times_i(st_complex<T> z) {
  return {-z.im, z.re};
}
template <class T>
ST_FN st_complex<T> st_times_minus_i(st_complex<T> z) {
  return {z.im, -z.re};
}

// Smith's division: factors out the larger part of the divisor, so that no intermediate value
// overflows early.
template <class T>
ST_FN T st_complex_divide(T a, T b) {
  auto re = st_magnitude_of(b.re), im = st_magnitude_of(b.im);
  if (re >= im) {
    if (re == 0 && im == 0) return T{a.re / re, a.im / re};
    auto ratio = b.im / b.re;
    auto scale = 1 / (b.re + b.im * ratio);
    return T{(a.re + a.im * ratio) * scale, (a.im - a.re * ratio) * scale};
  }
  auto ratio = b.re / b.im;
  auto scale = 1 / (b.im + b.re * ratio);
  return T{(a.re * ratio + a.im) * scale, (a.im * ratio - a.re) * scale};
}
template <class T>
ST_FN T st_complex_sign(T a) {
  if (a.re == 0 && a.im == 0) return T{0, 0};
  if (st_isinf(a.re) && !st_isfinite(a.im)) return T{st_nan_of(a.re), st_nan_of(a.re)};
  if (st_isinf(a.re)) return T{st_copysign((decltype(a.re))1, a.re), 0};
  if (st_isinf(a.im))
    return st_isnan(a.re) ? T{st_nan_of(a.re), st_nan_of(a.re)}
                          : T{0, st_copysign((decltype(a.re))1, a.im)};
  auto size = st_hypot(a.re, a.im);
  return T{a.re / size, a.im / size};
}
template <class T>
ST_FN st_complex<T> st_rint(st_complex<T> z) {
  return {st_rint(z.re), st_rint(z.im)};
}

template <class T>
ST_FN st_complex<T> st_exp(st_complex<T> z) {
  if (z.im == 0) return {st_exp(z.re), z.im};
  if (!st_isfinite(z.im)) {
    if (st_isinf(z.re) && z.re < 0) return {0, 0};
    if (st_isinf(z.re)) return {z.re, st_nan_of(z.im)};
    return {st_nan_of(z.re), st_nan_of(z.im)};
  }
  T c = st_cos(z.im), s = st_sin(z.im);
  if (st_isinf(z.re)) {
    T size = z.re > 0 ? z.re : 0;
    return {st_copysign(size, c), st_copysign(size, s)};
  }
  // In two halves, since exp(re) may overflow where the product with a small cosine does not.
  T half = st_exp(z.re * (T)0.5);
  T limit = sizeof(T) == 4 ? (T)88 : (T)709;
  if (z.re > limit) return {half * c * half, half * s * half};
  T size = st_exp(z.re);
  return {size * c, size * s};
}
template <class T>
ST_FN st_complex<T> st_exp2(st_complex<T> z) {
  const T ln2 = (T)0.69314718055994530942;
  return st_exp(st_complex<T>{z.re * ln2, z.im * ln2});
}
template <class T>
ST_FN st_complex<T> st_expm1(st_complex<T> z) {
  // Cases decided by an infinity or NaN, and real numbers, whose imaginary part keeps its sign.
  if (z.im == 0) return {z.re == 0 ? (T)0 : st_expm1(z.re), z.im};
  if (!st_isfinite(z.re) || !st_isfinite(z.im)) {
    st_complex<T> e = st_exp(z);
    return {e.re - 1, e.im};
  }
  T half_sine = st_sin(z.im / 2);
  return {st_expm1(z.re) * st_cos(z.im) - 2 * half_sine * half_sine, st_exp(z.re) * st_sin(z.im)};
}
template <class T>
ST_FN st_complex<T> st_log(st_complex<T> z) {
  T angle = st_arctan2(z.im, z.re);
  T x = st_magnitude_of(z.re), y = st_magnitude_of(z.im);
  T large = x > y ? x : y, small = x > y ? y : x;
  // Near the unit circle the logarithm of the modulus is small: |z|^2 - 1 without cancellation.
  if (large > (T)0.5 && large < (T)2 && small < 2) {
    T square = large * large + small * small;
    if (square > (T)0.5 && square < (T)2)
      return {st_log1p((large - 1) * (large + 1) + small * small) / 2, angle};
  }
  if (st_isfinite(large) && large > (sizeof(T) == 4 ? (T)1e38 : (T)1e308)) {
    return {st_log(st_hypot(x / 2, y / 2)) + (T)0.69314718055994530942, angle};
  }
  return {st_log(st_hypot(x, y)), angle};
}
template <class T>
ST_FN st_complex<T> st_log2(st_complex<T> z) {
  st_complex<T> l = st_log(z);
  return {l.re * (T)1.44269504088896340736, l.im * (T)1.44269504088896340736};
}
template <class T>
ST_FN st_complex<T> st_log10(st_complex<T> z) {
  st_complex<T> l = st_log(z);
  return {l.re * (T)0.43429448190325182765, l.im * (T)0.43429448190325182765};
}
template <class T>
ST_FN st_complex<T> st_log1p(st_complex<T> z) {
  T angle = st_arctan2(z.im, z.re + 1);
  if (st_magnitude_of(z.re) < (T)0.5 && st_magnitude_of(z.im) < (T)0.5) {
    return {st_log1p(z.re * (2 + z.re) + z.im * z.im) / 2, angle};
  }
  return {st_log(st_hypot(z.re + 1, z.im)), angle};
}
template <class T>
ST_FN st_complex<T> st_sqrt(st_complex<T> z) {
  if (z.re == 0 && z.im == 0) return {0, z.im};
  if (st_isinf(z.im)) return {st_infinity_of(z.im), z.im};
  if (st_isnan(z.re)) return {z.re, z.re};
  if (st_isinf(z.re)) {
    T other = z.im - z.im;  // 0, or NaN
    if (z.re > 0) return {z.re, st_isnan(other) ? other : st_copysign(other, z.im)};
    return {st_isnan(other) ? other : st_magnitude_of(other), st_copysign(z.re, z.im)};
  }
  if (st_isnan(z.im)) return {z.im, z.im};
  const T huge = sizeof(T) == 4 ? (T)0x1p125 : (T)0x1p1021,
          tiny = sizeof(T) == 4 ? (T)0x1p-120 : (T)0x1p-1000;
  T scale = 1;
  T largest =
      st_magnitude_of(z.re) > st_magnitude_of(z.im) ? st_magnitude_of(z.re) : st_magnitude_of(z.im);
  if (largest > huge) {
    z = {z.re / 4, z.im / 4};
    scale = 2;
  } else if (largest < tiny) {
    const T up = sizeof(T) == 4 ? (T)0x1p60 : (T)0x1p200;
    z = {z.re * up, z.im * up};
    scale = sizeof(T) == 4 ? (T)0x1p-30 : (T)0x1p-100;
  }
  T root = st_sqrt((st_magnitude_of(z.re) + st_hypot(z.re, z.im)) * (T)0.5);
  T other = z.im / (2 * root);
  if (z.re >= 0) return {root * scale, other * scale};
  return {st_magnitude_of(other) * scale, st_copysign(root, z.im) * scale};
}

template <class T>
ST_FN st_complex<T> st_sinh(st_complex<T> z) {
  if (z.im == 0) return {st_sinh(z.re), z.im};
  if (z.re == 0) return {st_isfinite(z.im) ? z.re : (T)0, st_sin(z.im)};
  T c = st_cos(z.im), s = st_sin(z.im);
  if (st_isinf(z.re)) {
    if (!st_isfinite(z.im)) return {z.re, st_nan_of(z.im)};
    return {st_copysign(st_infinity_of(c), c) * st_copysign((T)1, z.re),
            st_copysign(st_infinity_of(s), s)};
  }
  return {st_sinh(z.re) * c, st_cosh(z.re) * s};
}
template <class T>
ST_FN st_complex<T> st_cosh(st_complex<T> z) {
  if (z.im == 0)
    return {st_cosh(z.re), z.re == 0 || st_isnan(z.re) ? z.im : z.im * st_copysign((T)1, z.re)};
  if (z.re == 0) return {st_cos(z.im), st_isfinite(z.im) ? z.re * st_sin(z.im) : (T)0};
  T c = st_cos(z.im), s = st_sin(z.im);
  if (st_isinf(z.re)) {
    if (!st_isfinite(z.im)) return {st_infinity_of(c), st_nan_of(z.im)};
    return {st_copysign(st_infinity_of(c), c),
            st_copysign(st_infinity_of(s), s) * st_copysign((T)1, z.re)};
  }
  return {st_cosh(z.re) * c, st_sinh(z.re) * s};
}
template <class T>
ST_FN st_complex<T> st_tanh(st_complex<T> z) {
  if (st_isnan(z.re)) return {z.re, z.im == 0 ? z.im : z.re};
  const T large = sizeof(T) == 4 ? (T)11 : (T)22;
  if (st_magnitude_of(z.re) > large) {
    T sign = st_copysign((T)1, z.re);
    if (!st_isfinite(z.im)) {
      if (st_isinf(z.re)) return {sign, 0};
      return {st_nan_of(z.im), st_nan_of(z.im)};
    }
    T decay = st_exp(-st_magnitude_of(z.re));
    T im =
        st_isinf(z.re) ? st_copysign((T)0, z.im) : 4 * st_sin(z.im) * st_cos(z.im) * decay * decay;
    return {sign, im};
  }
  if (!st_isfinite(z.im)) return {z.re == 0 ? z.re : st_nan_of(z.im), st_nan_of(z.im)};
  // Kahan: t = tan y, s = sinh x, beta = 1 + t^2, rho = cosh x.
  T t = st_tan(z.im), s = st_sinh(z.re);
  T beta = 1 + t * t, rho = st_sqrt(1 + s * s);
  if (st_isinf(t)) return {rho / s, 1 / t};
  T denominator = 1 + beta * s * s;
  return {beta * rho * s / denominator, t / denominator};
}
template <class T>
ST_FN st_complex<T> st_sin(st_complex<T> z) {
  return st_times_minus_i(st_sinh(st_times_i(z)));
}
template <class T>
ST_FN st_complex<T> st_cos(st_complex<T> z) {
  return st_cosh(st_times_i(z));
}
template <class T>
ST_FN st_complex<T> st_tan(st_complex<T> z) {
  return st_times_minus_i(st_tanh(st_times_i(z)));
}

// Beyond this value both square roots below equal z to the last bit, and their product might
// overflow.
template <class T>
ST_FN bool st_is_huge(st_complex<T> z) {
  const T limit = sizeof(T) == 4 ? (T)0x1p60 : (T)0x1p500;
  return st_magnitude_of(z.re) > limit || st_magnitude_of(z.im) > limit;
}
// log(2 |z|), which does not overflow.
template <class T>
ST_FN T st_log_twice(st_complex<T> z) {
  return st_log(st_complex<T>{z.re, z.im}).re + (T)0.69314718055994530942;
}
template <class T>
ST_FN st_complex<T> st_arccos(st_complex<T> z) {
  if (st_isnan(z) && !st_isinf(z))
    return {z.re == 0 ? (T)1.57079632679489661923 : st_nan_of(z.re), st_nan_of(z.re)};
  if (st_is_huge(z)) {
    T size = st_log_twice(z);
    return {st_arctan2(st_magnitude_of(z.im), z.re), st_copysign(size, -z.im)};
  }
  st_complex<T> minus = st_sqrt(st_complex<T>{1 - z.re, -z.im}),
                plus = st_sqrt(st_complex<T>{1 + z.re, z.im});
  return {2 * st_arctan2(minus.re, plus.re), st_arcsinh(plus.re * minus.im - plus.im * minus.re)};
}
template <class T>
ST_FN st_complex<T> st_arcsin(st_complex<T> z) {
  if (st_isnan(z) && !st_isinf(z)) return {z.re == 0 ? z.re : st_nan_of(z.re), st_nan_of(z.re)};
  if (st_is_huge(z)) {
    T size = st_log_twice(z);
    return {st_arctan2(z.re, st_magnitude_of(z.im)), st_copysign(size, z.im)};
  }
  st_complex<T> minus = st_sqrt(st_complex<T>{1 - z.re, -z.im}),
                plus = st_sqrt(st_complex<T>{1 + z.re, z.im});
  return {st_arctan2(z.re, minus.re * plus.re - minus.im * plus.im),
          st_arcsinh(minus.re * plus.im - minus.im * plus.re)};
}
template <class T>
ST_FN st_complex<T> st_arcsinh(st_complex<T> z) {
  return st_times_minus_i(st_arcsin(st_times_i(z)));
}
template <class T>
ST_FN st_complex<T> st_arccosh(st_complex<T> z) {
  st_complex<T> w = st_arccos(z);
  // i * acos(z) with the sign that makes the real part positive.
  if (st_signbit(w.im)) return {-w.im, st_copysign(w.re, z.im)};
  return {w.im, st_copysign(w.re, z.im)};
}
template <class T>
ST_FN st_complex<T> st_arctanh(st_complex<T> z) {
  const T half_pi = (T)1.57079632679489661923;
  T x = z.re, y = z.im;
  if (st_isnan(x))
    return {st_isinf(y) ? st_copysign((T)0, x) : x, st_isinf(y) ? st_copysign(half_pi, y) : x};
  if (st_isnan(y)) return {st_isinf(x) || x == 0 ? st_copysign((T)0, x) : y, y};
  if (st_is_huge(z)) {
    // 1/z to the last bit; the angle is a right one.
    T re = st_isfinite(x) && st_isfinite(y) ? st_complex_divide(st_complex<T>{1, 0}, z).re
                                            : st_copysign((T)0, x);
    return {re, st_copysign(half_pi, y)};
  }
  T size = st_magnitude_of(x), off = 1 - size;
  T re = st_log1p(4 * size / (off * off + y * y)) / 4;
  T im = st_arctan2(2 * y, off * (1 + size) - y * y) / 2;
  return {st_copysign(re, x), im};
}
template <class T>
ST_FN st_complex<T> st_arctan(st_complex<T> z) {
  return st_times_minus_i(st_arctanh(st_times_i(z)));
}

// As in NumPy: whole exponents below 100 by multiplication, others by the logarithm.
template <class T>
ST_FN T st_complex_power(T a, T b) {
  if (b.re == 0 && b.im == 0) return T{1, 0};
  if (a.re == 0 && a.im == 0) {
    if (b.re > 0) return T{0, 0};
    return T{st_nan_of(a.re), st_nan_of(a.re)};
  }
  if (b.im == 0 && b.re == st_float_trunc(b.re) && b.re > -100 && b.re < 100) {
    int count = (int)(b.re < 0 ? -b.re : b.re);
    T result{1, 0}, base = a;
    bool first = true;
    while (count != 0) {
      if (count & 1) {
        result = first ? base : st_multiply(result, base);
        first = false;
      }
      count >>= 1;
      if (count != 0) base = st_multiply(base, base);
    }
    return b.re < 0 ? st_complex_divide(T{1, 0}, result) : result;
  }
  return st_exp(st_multiply(b, st_log(a)));
}
