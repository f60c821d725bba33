// Integers, bool and the parts of arithmetic that all types share. NumPy's rules.

// --- predicates ---

ST_FN bool st_isnan(float x) { return x != x; }
ST_FN bool st_isnan(double x) { return x != x; }
ST_FN bool st_isinf(float x) { return (st_bits(x) & 0x7FFFFFFFu) == 0x7F800000u; }
ST_FN bool st_isinf(double x) {
  return (st_bits(x) & 0x7FFFFFFFFFFFFFFFull) == 0x7FF0000000000000ull;
}
ST_FN bool st_isfinite(float x) { return (st_bits(x) & 0x7F800000u) != 0x7F800000u; }
ST_FN bool st_isfinite(double x) {
  return (st_bits(x) & 0x7FF0000000000000ull) != 0x7FF0000000000000ull;
}
ST_FN bool st_signbit(float x) { return st_bits(x) >> 31; }
ST_FN bool st_signbit(double x) { return st_bits(x) >> 63; }
template <class T>
ST_FN bool st_isnan(T) {
  return false;
}
template <class T>
ST_FN bool st_isinf(T) {
  return false;
}
template <class T>
ST_FN bool st_isfinite(T) {
  return true;
}
template <class T>
ST_FN bool st_isnan(st_complex<T> x) {
  return st_isnan(x.re) || st_isnan(x.im);
}
template <class T>
ST_FN bool st_isinf(st_complex<T> x) {
  return st_isinf(x.re) || st_isinf(x.im);
}
template <class T>
ST_FN bool st_isfinite(st_complex<T> x) {
  return st_isfinite(x.re) && st_isfinite(x.im);
}
template <class T>
ST_FN bool st_truth(T x) {
  return st_cast<bool>(x);
}

// --- comparison; int64 with uint64 by value; complex by real, then imaginary part ---

template <class A, class B>
ST_FN bool st_equal(A a, B b) {
  if constexpr (st_traits<A>::kind == ST_INT && sizeof(A) == 8 &&
                st_traits<A>::kind == st_traits<B>::kind) {
    if constexpr (st_traits<A>::is_signed && !st_traits<B>::is_signed) {
      return a >= 0 && (st_u64)a == b;
    } else if constexpr (!st_traits<A>::is_signed && st_traits<B>::is_signed) {
      return b >= 0 && a == (st_u64)b;
    } else {
      return a == b;
    }
  } else if constexpr (st_traits<A>::kind == ST_COMPLEX) {
    return a.re == b.re && a.im == b.im;
  } else {
    return a == b;
  }
}
template <class A, class B>
ST_FN bool st_less(A a, B b) {
  if constexpr (st_traits<A>::kind == ST_INT && sizeof(A) == 8 &&
                st_traits<A>::kind == st_traits<B>::kind) {
    if constexpr (st_traits<A>::is_signed && !st_traits<B>::is_signed) {
      return a < 0 || (st_u64)a < b;
    } else if constexpr (!st_traits<A>::is_signed && st_traits<B>::is_signed) {
      return b >= 0 && a < (st_u64)b;
    } else {
      return a < b;
    }
  } else if constexpr (st_traits<A>::kind == ST_COMPLEX) {
    return (a.re < b.re && !st_isnan(a.im) && !st_isnan(b.im)) || (a.re == b.re && a.im < b.im);
  } else {
    return a < b;
  }
}
template <class A, class B>
ST_FN bool st_less_equal(A a, B b) {
  if constexpr (st_traits<A>::kind == ST_COMPLEX) {
    return (a.re < b.re && !st_isnan(a.im) && !st_isnan(b.im)) || (a.re == b.re && a.im <= b.im);
  } else if constexpr (st_traits<A>::kind == ST_FLOAT) {
    return a <= b;
  } else {
    return !st_less(b, a);
  }
}
template <class A, class B>
ST_FN bool st_not_equal(A a, B b) {
  return !st_equal(a, b);
}
template <class A, class B>
ST_FN bool st_greater(A a, B b) {
  return st_less(b, a);
}
template <class A, class B>
ST_FN bool st_greater_equal(A a, B b) {
  return st_less_equal(b, a);
}

template <class T>
ST_FN T st_maximum(T a, T b) {
  return st_less_equal(b, a) || st_isnan(a) ? a : b;
}
template <class T>
ST_FN T st_minimum(T a, T b) {
  return st_less_equal(a, b) || st_isnan(a) ? a : b;
}
template <class T>
ST_FN T st_fmax(T a, T b) {
  return st_less_equal(b, a) || st_isnan(b) ? a : b;
}
template <class T>
ST_FN T st_fmin(T a, T b) {
  return st_less_equal(a, b) || st_isnan(b) ? a : b;
}

// --- arithmetic; integers wrap ---

#define ST_WIDE(T, x) ((typename st_traits<T>::wide)(x))
template <class T>
ST_FN T st_add(T a, T b) {
  if constexpr (st_traits<T>::kind == ST_BOOL) {
    return a || b;
  } else if constexpr (st_traits<T>::kind == ST_INT) {
    return (T)(ST_WIDE(T, a) + ST_WIDE(T, b));
  } else if constexpr (st_traits<T>::kind == ST_COMPLEX) {
    return T{a.re + b.re, a.im + b.im};
  } else {
    return a + b;
  }
}
template <class T>
ST_FN T st_subtract(T a, T b) {
  if constexpr (st_traits<T>::kind == ST_INT) {
    return (T)(ST_WIDE(T, a) - ST_WIDE(T, b));
  } else if constexpr (st_traits<T>::kind == ST_COMPLEX) {
    return T{a.re - b.re, a.im - b.im};
  } else {
    return a - b;
  }
}
template <class T>
ST_FN T st_multiply(T a, T b) {
  if constexpr (st_traits<T>::kind == ST_BOOL) {
    return a && b;
  } else if constexpr (st_traits<T>::kind == ST_INT) {
    return (T)(ST_WIDE(T, a) * ST_WIDE(T, b));
  } else if constexpr (st_traits<T>::kind == ST_COMPLEX) {
    return T{a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
  } else {
    return a * b;
  }
}
template <class T>
ST_FN T st_negative(T a) {
  if constexpr (st_traits<T>::kind == ST_INT) {
    return (T)(0 - ST_WIDE(T, a));
  } else if constexpr (st_traits<T>::kind == ST_COMPLEX) {
    return T{-a.re, -a.im};
  } else {
    return -a;
  }
}
template <class T>
ST_FN T st_conjugate(T a) {
  if constexpr (st_traits<T>::kind == ST_COMPLEX) {
    return T{a.re, -a.im};
  } else {
    return a;
  }
}
template <class T>
ST_FN auto st_real(T a) {
  if constexpr (st_traits<T>::kind == ST_COMPLEX) {
    return a.re;
  } else {
    return a;
  }
}
template <class T>
ST_FN auto st_imag(T a) {
  if constexpr (st_traits<T>::kind == ST_COMPLEX) {
    return a.im;
  } else {
    return (T)0;
  }
}

#if !ST_CUDA
// The quotient towards zero, by floating-point arithmetic, which vectors have. The inverse is
// rounded away from zero, so that products do not end below a whole quotient; they exceed it by
// less than a part in 2^22 of 16-bit integers, 2^51 of 32-bit ones, and the next one is further. An
// inverse, since that of a number that all elements share is found once.
ST_FN float st_inverse_beyond(float b) { return st_float_of(st_bits(1 / b) + 1); }
ST_FN double st_inverse_beyond(double b) { return st_double_of(st_bits(1 / b) + 1); }
template <class F, class T>
ST_FN T st_quotient_by(T a, T b) {
  return (T)((F)a * st_inverse_beyond((F)b));
}
#if defined(__AVX512DQ__)
// 64-bit integers, where vectors convert and multiply them. The inverse is slightly too small, so
// that no quotient by it, rounded five times, exceeds the true one. The first quotient is too small
// by at most 2^15 + 1: a part in 2^49 of at most 2^64. The quotient of its remainder is too small
// by at most one.
struct st_long_division {
  st_u64 quotient, rest;
};
ST_FN st_long_division st_divide_long(st_u64 a, st_u64 b) {
  const double inverse = 1 / (double)b * (1 - 0x1p-50);
  const st_u64 most = (st_u64)((double)a * inverse), rest = a - most * b;
  const st_u64 more = (st_u64)((double)rest * inverse), last = rest - more * b;
  const bool one = last >= b;
  return st_long_division{most + more + (one ? 1 : 0), one ? last - b : last};
}
ST_FN st_u64 st_long_magnitude(st_u64 a) { return a; }
ST_FN st_u64 st_long_magnitude(st_i64 a) { return a < 0 ? 0 - (st_u64)a : (st_u64)a; }
template <class T>
ST_FN T st_quotient_by_vectors(T a, T b) {
  const st_u64 quotient = st_divide_long(st_long_magnitude(a), st_long_magnitude(b)).quotient;
  return (T)((a < 0) != (b < 0) ? 0 - quotient : quotient);
}
// By zero: zero.
template <class T>
ST_FN T st_floor_divide_by_vectors(T a, T b) {
  const st_long_division division =
      st_divide_long(st_long_magnitude(a), b == 0 ? 1 : st_long_magnitude(b));
  const bool negative = (a < 0) != (b < 0);
  const st_u64 quotient = division.quotient + (negative && division.rest != 0 ? 1 : 0);
  return b == 0 ? (T)0 : (T)(negative ? 0 - quotient : quotient);
}
#endif
#endif
// a / b as in C; b is a safe divisor.
template <class T>
ST_FN T st_quotient(T a, T b) {
#if !ST_CUDA
  if constexpr (sizeof(T) <= 2) {
    return st_quotient_by<float>(a, b);
  } else if constexpr (sizeof(T) == 4) {
    return st_quotient_by<double>(a, b);
  }
#if defined(__AVX512DQ__)
  if constexpr (sizeof(T) == 8) return st_quotient_by_vectors(a, b);
#endif
#endif
  return (T)(a / b);
}
template <class T>
ST_FN bool st_negates(T b) {
  if constexpr (st_traits<T>::is_signed) {
    return b == -1;
  } else {
    return false;
  }
}
// Replaces divisors without a quotient by one: zero, and -1, by which the least integer has none.
template <class T>
ST_FN T st_safe_divisor(T b) {
  return b == 0 || st_negates(b) ? (T)1 : b;
}
// The least integer divided by -1 is itself, as in NumPy.
template <class T>
ST_FN T st_integer_floor_divide(T a, T b) {
#if !ST_CUDA && defined(__AVX512DQ__)
  if constexpr (sizeof(T) == 8) return st_floor_divide_by_vectors(a, b);
#endif
  const T divisor = st_safe_divisor(b);
  T quotient = st_quotient(a, divisor);
  if constexpr (st_traits<T>::is_signed) {
    const T rest = (T)(a - quotient * divisor);
    quotient = (T)(quotient - (rest != 0 && (rest < 0) != (divisor < 0)));
  }
  if (st_negates(b)) quotient = (T)(0 - (typename st_traits<T>::as_unsigned)quotient);
  return b == 0 ? (T)0 : quotient;
}
// By zero: zero.
template <class T>
ST_FN T st_integer_fmod(T a, T b) {
  const T divisor = st_safe_divisor(b);
  return (T)(a - st_quotient(a, divisor) * divisor);
}
template <class T>
ST_FN T st_integer_remainder(T a, T b) {
  T rest = st_integer_fmod(a, b);
  if constexpr (st_traits<T>::is_signed) {
    rest = (T)(rest + (rest != 0 && (rest < 0) != (b < 0) ? b : (T)0));
  }
  return rest;
}
template <class T>
ST_FN T st_integer_power(T a, T b) {
  if constexpr (st_traits<T>::is_signed) {
    if (b < 0) return a == 1 ? 1 : a == -1 ? (b & 1 ? -1 : 1) : 0;
  }
  T result = 1;
  while (b != 0) {
    if (b & 1) result = st_multiply(result, a);
    a = st_multiply(a, a);
    b >>= 1;
  }
  return result;
}
template <class T>
ST_FN T st_integer_reciprocal(T a) {
  if (a == 0) return st_traits<T>::is_signed && sizeof(T) >= 4 ? st_traits<T>::lowest : 0;
  return (T)1 / a;
}

// --- bits ---

template <class T>
ST_FN T st_bitwise_and(T a, T b) {
  return (T)(a & b);
}
template <class T>
ST_FN T st_bitwise_or(T a, T b) {
  return (T)(a | b);
}
template <class T>
ST_FN T st_bitwise_xor(T a, T b) {
  return (T)(a ^ b);
}
template <class T>
ST_FN T st_invert(T a) {
  if constexpr (st_traits<T>::kind == ST_BOOL) {
    return !a;
  } else {
    return (T)~a;
  }
}
// A shift count outside [0, width) shifts all bits out.
template <class T>
ST_FN T st_left_shift(T a, T b) {
  typedef typename st_traits<T>::as_unsigned U;
  constexpr int mask = st_traits<T>::bits - 1;
  T shifted = (T)(ST_WIDE(T, (U)a) << ((int)b & mask));
  return (U)b < (U)st_traits<T>::bits ? shifted : (T)0;
}
template <class T>
ST_FN T st_right_shift(T a, T b) {
  typedef typename st_traits<T>::as_unsigned U;
  constexpr int mask = st_traits<T>::bits - 1;
  T shifted = (T)(a >> ((int)b & mask));
  return (U)b < (U)st_traits<T>::bits ? shifted : (T)(a < 0 ? -1 : 0);
}
template <class T>
ST_FN typename st_traits<T>::as_unsigned st_magnitude(T a) {
  typedef typename st_traits<T>::as_unsigned U;
  return a < 0 ? (U)(0 - ST_WIDE(T, a)) : (U)a;
}
template <class T>
ST_FN st_u8 st_bitwise_count(T a) {
  st_u64 x = st_magnitude(a);
  x = x - ((x >> 1) & 0x5555555555555555ull);
  x = (x & 0x3333333333333333ull) + ((x >> 2) & 0x3333333333333333ull);
  x = (x + (x >> 4)) & 0x0F0F0F0F0F0F0F0Full;
  return (st_u8)((x * 0x0101010101010101ull) >> 56);
}
template <class T>
ST_FN T st_gcd(T a, T b) {
  typedef typename st_traits<T>::as_unsigned U;
  U x = st_magnitude(a), y = st_magnitude(b);
  while (y != 0) {
    U rest = x % y;
    x = y;
    y = rest;
  }
  return (T)x;
}
template <class T>
ST_FN T st_lcm(T a, T b) {
  typedef typename st_traits<T>::as_unsigned U;
  U divisor = (U)st_gcd(a, b);
  if (divisor == 0) return 0;
  return (T)(ST_WIDE(T, (U)(st_magnitude(a) / divisor)) * ST_WIDE(T, st_magnitude(b)));
}
