// float and double. Functions that are one call are defined for both by these macros.

#define ST_FLOAT1(op, single, wide)                  \
  ST_FN float st_##op(float a) { return single(a); } \
  ST_FN double st_##op(double a) { return wide(a); }
#define ST_FLOAT2(op, single, wide)                              \
  ST_FN float st_##op(float a, float b) { return single(a, b); } \
  ST_FN double st_##op(double a, double b) { return wide(a, b); }

#if ST_CUDA
// CUDA reduces |a| beyond 105,615 by 192 bits of 2 / pi in a loop over local memory. Below 2^30 the
// sum of k times two doubles for pi / 2 is exact enough; below 48,000 three floats are, whose first
// product is exact. sin and cos are then within 1.52 units in the last place (2e8 arguments).
constexpr float kStReducible = 0x1p+30f;
// r = a - k pi / 2 within pi / 4 of 0; `quadrant` is k.
ST_FN void st_reduce(float a, float& r, int& quadrant) {
  if (fabsf(a) < 48000.0f) {
    const float k = rintf(a * 0x1.45f306p-1f);
    r = fmaf(k, -0x1.84698ap-48f, fmaf(k, -0x1.4442dp-24f, fmaf(k, -0x1.921fb4p+0f, a)));
    quadrant = (int)k;
    if (k == 0) r = a;  // keeps the sign of zero
  } else {
    const double k = rint(a * 0x1.45f306dc9c883p-1);
    r = (float)fma(k, -0x1.1a62633145c07p-54, fma(k, -0x1.921fb54442d18p+0, (double)a));
    quadrant = (int)k;
  }
}
// Polynomials in r^2 with minimal maximal relative error over |r| <= pi / 4, by Lawson's iteration.
ST_FN float st_sine_near_zero(float r) {
  const float s = r * r;
  const float p = fmaf(fmaf(-0x1.994222p-13f, s, 0x1.110736p-7f), s, -0x1.555546p-3f);
  return s == 0 ? r : fmaf(p * s, r, r);
}
ST_FN float st_cosine_near_zero(float r) {
  const float s = r * r;
  const float p = fmaf(fmaf(0x1.99ea04p-16f, s, -0x1.6c0c2ep-10f), s, 0x1.55554ap-5f);
  return fmaf(fmaf(p, s, -0.5f), s, 1.0f);
}
ST_FN void st_sincos(float a, float& s, float& c) {
  if (!(fabsf(a) < kStReducible)) {
    sincosf(a, &s, &c);
    return;
  }
  float r;
  int quadrant;
  st_reduce(a, r, quadrant);
  const float sine = st_sine_near_zero(r), cosine = st_cosine_near_zero(r);
  s = quadrant & 1 ? cosine : sine;
  c = quadrant & 1 ? sine : cosine;
  if (quadrant & 2) s = -s;
  if ((quadrant + 1) & 2) c = -c;
}
ST_FN void st_sincos(double a, double& s, double& c) { sincos(a, &s, &c); }
// The polynomial for the quadrant.
ST_FN float st_sine_in(float r, int quadrant) {
  const float value = quadrant & 1 ? st_cosine_near_zero(r) : st_sine_near_zero(r);
  return quadrant & 2 ? -value : value;
}
ST_FN float st_sin(float a) {
  if (!(fabsf(a) < kStReducible)) return sinf(a);
  float r;
  int quadrant;
  st_reduce(a, r, quadrant);
  return st_sine_in(r, quadrant);
}
ST_FN float st_cos(float a) {
  if (!(fabsf(a) < kStReducible)) return cosf(a);
  float r;
  int quadrant;
  st_reduce(a, r, quadrant);
  return st_sine_in(r, quadrant + 1);
}
ST_FN double st_sin(double a) { return sin(a); }
ST_FN double st_cos(double a) { return cos(a); }
ST_FLOAT1(tan, tanf, tan)
#else
#ifdef STRIDE_FEW_TURNS
// On the CPU, arguments of few turns are reduced in a quarter of the time; a block without other
// arguments uses st_few_turns. The results are equal.
ST_FLOAT1(sin, __stride::sin_of_any, __stride::sin_of_any)
ST_FLOAT1(cos, __stride::cos_of_any, __stride::cos_of_any)
ST_FLOAT1(tan, __stride::tan_of_any, __stride::tan_of_any)
#else
ST_FLOAT1(sin, sinf, sin)
ST_FLOAT1(cos, cosf, cos)
ST_FLOAT1(tan, tanf, tan)
#endif
template <typename T>
ST_FN void st_sincos(T a, T& s, T& c) {
  s = st_sin(a);
  c = st_cos(a);
}
struct st_any_turns {
  template <typename T>
  T sin(T a) {
    return st_sin(a);
  }
  template <typename T>
  T cos(T a) {
    return st_cos(a);
  }
  template <typename T>
  T tan(T a) {
    return st_tan(a);
  }
};
#ifdef STRIDE_FEW_TURNS
struct st_few_turns {
  bool exceeded = false;  // set by an argument out of range, whose result is then wrong
  template <typename T>
  T sin(T a) {
    exceeded |= !__stride::of_few_turns(a);
    return __stride::sin_of_few(a);
  }
  template <typename T>
  T cos(T a) {
    exceeded |= !__stride::of_few_turns(a);
    return __stride::cos_of_few(a);
  }
  template <typename T>
  T tan(T a) {
    exceeded |= !__stride::of_few_turns(a);
    return __stride::tan_of_few(a);
  }
};
#else
struct st_few_turns : st_any_turns {
  bool exceeded = false;
};
#endif
#endif
ST_FLOAT1(arcsin, asinf, asin)
ST_FN float st_arccos(float a) { return acosf(a); }
// Library functions are off by up to two units in the last place.
template <int kCount>
ST_FN double st_polynomial(const double (&coefficients)[kCount], double x) {
  double sum = coefficients[kCount - 1];
  for (int i = kCount - 2; i >= 0; --i) sum = sum * x + coefficients[i];
  return sum;
}
// arcsin(s) = s + s t P(t), t = s^2: P interpolates at 14 Chebyshev points of t in [0, 1/4].
ST_FN double st_arcsin_rest(double t) {
  const double coefficients[] = {0x1.5555555555555p-3,  0x1.3333333333389p-4, 0x1.6db6db6dac0eap-5,
                                 0x1.f1c71c7a5e151p-6,  0x1.6e8ba121b9d5fp-6, 0x1.1c4efd20ebb99p-6,
                                 0x1.c990a42b32b03p-7,  0x1.7b02ef007d23ep-7, 0x1.3b462d121c5d2p-7,
                                 0x1.31777489dfd29p-7,  0x1.8dcdf11997e0fp-9, 0x1.40c91fa8deb7ep-6,
                                 -0x1.3bd7e353ddbc2p-6, 0x1.e58a4f278e007p-6};
  return t * st_polynomial(coefficients, t);
}
// Beyond 1/2: 2 arcsin(s), s = sqrt((1 - |a|) / 2), whose upper half is exact when squared.
ST_FN double st_arccos(double a) {
  const double half_pi = 0x1.921fb54442d18p+0, half_pi_low = 0x1.1a62633145c07p-54;
  if (a >= -0.5 && a <= 0.5) return half_pi - (a - (half_pi_low - a * st_arcsin_rest(a * a)));
  const double t = (1 - (a < 0 ? -a : a)) * 0.5, s = ST_BUILTIN(sqrt)(t);
  const double upper = st_double_of(st_bits(s) & 0xFFFFFFFFF8000000ull);
  const double rest = (s > 0 ? (t - upper * upper) / (s + upper) : s) + s * st_arcsin_rest(t);
  return a > 0 ? 2 * (upper + rest) : 2 * (half_pi - (upper + (rest - half_pi_low)));
}
ST_FLOAT1(arctan, atanf, atan)
ST_FN float st_sinh(float a) { return sinhf(a); }
// Taylor series: the next term is below 4e-23.
ST_FN double st_sinh(double a) {
  if (!(a > -1 && a < 1)) return sinh(a);
  const double coefficients[] = {
      0x1.5555555555555p-3,  0x1.1111111111111p-7,  0x1.a01a01a01a01ap-13, 0x1.71de3a556c734p-19,
      0x1.ae64567f544e4p-26, 0x1.6124613a86d09p-33, 0x1.ae7f3e733b81fp-41, 0x1.952c77030ad4ap-49,
      0x1.2f49b46814157p-57, 0x1.71b8ef6dcf572p-66};
  const double square = a * a;
  return a + a * (square * st_polynomial(coefficients, square));
}
ST_FLOAT1(cosh, coshf, cosh)
ST_FLOAT1(tanh, tanhf, tanh)
#if ST_CUDA
ST_FN float st_arcsinh(float a) { return asinhf(a); }
ST_FN float st_arccosh(float a) { return acoshf(a); }
// CUDA's are off by up to three units in the last place. The argument of log1p with what rounding
// took from it, so that little more than log1p's own error stays.
ST_FN double st_log1p_sum(double a, double b, double low) {
  double sum = a + b, part = sum - a;
  low += (a - (sum - part)) + (b - part);
  return log1p(sum) + low / (1 + sum);
}
// log(a + sqrt(a^2 + 1))
ST_FN double st_arcsinh(double x) {
  double a = fabs(x);
  if (!(a < 0x1p+28)) return copysign(log(a) + 0x1.62e42fefa39efp-1, x);
  double square = a * a, square_low = fma(a, a, -square);
  double inner = 1 + square;
  double inner_low = (a < 1 ? (1 - inner) + square : (square - inner) + 1) + square_low;
  double root = sqrt(inner), root_low = (fma(-root, root, inner) + inner_low) / (2 * root);
  double less = root - 1;
  return copysign(st_log1p_sum(a, less, ((root - less) - 1) + root_low), x);
}
// log(1 + t + sqrt(2 t + t^2)) with t = x - 1
ST_FN double st_arccosh(double x) {
  if (!(x > 1)) return x == 1 ? 0 : (x - x) / (x - x);
  if (!(x < 0x1p+28)) return log(x) + 0x1.62e42fefa39efp-1;
  double t = x - 1, t_low = (x - t) - 1;
  double square = t * t, square_low = fma(t, t, -square);
  double inner = 2 * t + square, part = inner - 2 * t;
  double inner_low = (2 * t - (inner - part)) + (square - part) + square_low + 2 * t_low * x;
  double root = sqrt(inner), root_low = (fma(-root, root, inner) + inner_low) / (2 * root);
  return st_log1p_sum(t, root, t_low + root_low);
}
#else
ST_FLOAT1(arcsinh, asinhf, asinh)
ST_FLOAT1(arccosh, acoshf, acosh)
#endif
ST_FLOAT1(arctanh, atanhf, atanh)
ST_FLOAT1(exp, expf, exp)
ST_FLOAT1(exp2, exp2f, exp2)
ST_FLOAT1(expm1, expm1f, expm1)
ST_FLOAT1(log, logf, log)
#if ST_CUDA
ST_FN float st_log2(float a) { return log2f(a); }
// CUDA's log2 is a product with a rounded logarithm of e: log2(8) was 1 unit in the last place
// below 3. Here powers of two are exact, as in NumPy. frexp returns 0, infinity and NaN unchanged,
// with exponent 0.
ST_FN double st_log2(double a) {
  int exponent;
  double part = frexp(a, &exponent);  // in [0.5, 1)
  if (part < 0x1.6a09e667f3bcdp-1) {  // sqrt(0.5)
    part *= 2;
    --exponent;
  }
  return exponent + log2(part);
}
#else
ST_FLOAT1(log2, log2f, log2)
#endif
ST_FLOAT1(log10, log10f, log10)
ST_FLOAT1(log1p, log1pf, log1p)
ST_FLOAT1(cbrt, cbrtf, cbrt)
ST_FLOAT1(sqrt, ST_BUILTIN(sqrtf), ST_BUILTIN(sqrt))
ST_FLOAT1(float_floor, ST_BUILTIN(floorf), ST_BUILTIN(floor))
ST_FLOAT1(float_ceil, ST_BUILTIN(ceilf), ST_BUILTIN(ceil))
ST_FLOAT1(float_trunc, ST_BUILTIN(truncf), ST_BUILTIN(trunc))
ST_FLOAT1(rint, ST_BUILTIN(rintf), ST_BUILTIN(rint))
ST_FLOAT1(magnitude_of, ST_BUILTIN(fabsf), ST_BUILTIN(fabs))
ST_FLOAT2(copysign, ST_BUILTIN(copysignf), ST_BUILTIN(copysign))
ST_FLOAT2(arctan2, atan2f, atan2)
#if ST_CUDA
ST_FN float st_hypot(float a, float b) { return hypotf(a, b); }
// CUDA's hypot rounds up to infinity near the largest double; NumPy's does not. If the smaller
// operand is lost in rounding, the larger one is the result. Scaling by a power of two is exact.
ST_FN double st_hypot(double a, double b) {
  double large = fmax(fabs(a), fabs(b)), small = fmin(fabs(a), fabs(b));
  if (a == a && b == b && small <= large * 0x1p-54) return large;
  bool huge = large > 0x1p+1000;
  double scale = huge ? 0x1p-600 : 1.0;
  return hypot(a * scale, b * scale) * (huge ? 0x1p+600 : 1.0);
}
#else
ST_FLOAT2(hypot, hypotf, hypot)
#endif
ST_FLOAT2(float_power, powf, pow)
ST_FLOAT2(float_fmod, fmodf, fmod)

#define ST_ROUNDING(op)                             \
  template <class T>                                \
  ST_FN T st_##op(T a) {                            \
    if constexpr (st_traits<T>::kind == ST_FLOAT) { \
      return st_float_##op(a);                      \
    } else {                                        \
      return a;                                     \
    }                                               \
  }
ST_ROUNDING(floor)
ST_ROUNDING(ceil)
ST_ROUNDING(trunc)

ST_FN float st_degrees(float a) { return a * (180.0f / 3.14159265358979323846f); }
ST_FN double st_degrees(double a) { return a * (180.0 / 3.14159265358979323846); }
ST_FN float st_radians(float a) { return a * (3.14159265358979323846f / 180.0f); }
ST_FN double st_radians(double a) { return a * (3.14159265358979323846 / 180.0); }

// C's remainder moved to the divisor's sign; a zero takes that sign too.
template <class T>
ST_FN T st_float_remainder(T a, T b) {
  T rest = st_float_fmod(a, b);
  if (b == 0) return rest;
  if (rest == 0) return st_copysign((T)0, b);
  return (b < 0) != (rest < 0) ? rest + b : rest;
}
// Consistent with the remainder: a == b * quotient + remainder up to rounding.
template <class T>
ST_FN T st_float_floor_divide(T a, T b) {
  if (b == 0) return a / b;
  T rest = st_float_fmod(a, b);
  T quotient = (a - rest) / b;
  if (rest != 0 && (b < 0) != (rest < 0)) quotient -= 1;
  if (quotient == 0) return st_copysign((T)0, a / b);
  T whole = st_float_floor(quotient);
  return quotient - whole > (T)0.5 ? whole + 1 : whole;
}

template <class T>
ST_FN T st_logaddexp(T a, T b) {
  if (a == b) return a + (T)0.69314718055994530942;
  T distance = a - b;
  if (distance > 0) return a + st_log1p(st_exp(-distance));
  if (distance <= 0) return b + st_log1p(st_exp(distance));
  return distance;  // NaN
}
template <class T>
ST_FN T st_logaddexp2(T a, T b) {
  const T per_log2 = (T)1.44269504088896340736;
  if (a == b) return a + 1;
  T distance = a - b;
  if (distance > 0) return a + st_log1p(st_exp2(-distance)) * per_log2;
  if (distance <= 0) return b + st_log1p(st_exp2(distance)) * per_log2;
  return distance;
}
template <class T>
ST_FN T st_heaviside(T a, T b) {
  return a != a ? a : a == 0 ? b : a < 0 ? (T)0 : (T)1;
}

// Mantissa and exponent from the bits; a denormal is scaled up first. Zero, infinity and NaN are
// returned with exponent 0.
ST_FN float st_frexp_parts(float a, st_i32& exponent) {
  const bool tiny = (st_bits(a) & 0x7F800000u) == 0;
  const float scaled = tiny ? a * 0x1p25f : a;
  const st_u32 bits = st_bits(scaled);
  const bool plain = a != 0 && st_isfinite(a);
  exponent = plain ? (st_i32)(bits >> 23 & 0xFF) - 126 - (tiny ? 25 : 0) : 0;
  return plain ? st_float_of((bits & 0x807FFFFFu) | 0x3F000000u) : a;
}
ST_FN double st_frexp_parts(double a, st_i32& exponent) {
  const bool tiny = (st_bits(a) & 0x7FF0000000000000ull) == 0;
  const double scaled = tiny ? a * 0x1p54 : a;
  const st_u64 bits = st_bits(scaled);
  const bool plain = a != 0 && st_isfinite(a);
  exponent = plain ? (st_i32)(bits >> 52 & 0x7FF) - 1022 - (tiny ? 54 : 0) : 0;
  return plain ? st_double_of((bits & 0x800FFFFFFFFFFFFFull) | 0x3FE0000000000000ull) : a;
}
template <class T>
ST_FN T st_frexp_mantissa(T a) {
  st_i32 exponent;
  return st_frexp_parts(a, exponent);
}
template <class T>
ST_FN st_i32 st_frexp_exponent(T a) {
  st_i32 exponent;
  st_frexp_parts(a, exponent);
  return exponent;
}
// Exact: the difference of a float and its whole part.
template <class T>
ST_FN T st_modf_fraction(T a) {
  return st_copysign(st_isinf(a) ? (T)0 : a - st_trunc(a), a);
}

ST_FN float st_ldexp(float a, st_i32 b) { return ldexpf(a, b); }
ST_FN double st_ldexp(double a, st_i32 b) { return ldexp(a, b); }
template <class T>
ST_FN T st_ldexp(T a, st_i64 b) {
  return st_ldexp(a, (st_i32)(b > 100000 ? 100000 : b < -100000 ? -100000 : b));
}

// The neighbour of x on its integer line: sign and magnitude, `Bits` wide.
template <class Bits>
ST_FN Bits st_next_bits(Bits a, Bits b, bool equal, bool a_less) {
  const Bits sign = (Bits)((Bits)1 << (8 * sizeof(Bits) - 1));
  if (equal) return b;
  if ((Bits)(a & (Bits)~sign) == 0) return (Bits)((b & sign) | 1);
  bool away = ((a & sign) != 0) != a_less;
  return away ? (Bits)(a + 1) : (Bits)(a - 1);
}
ST_FN float st_nextafter(float a, float b) {
  if (a != a || b != b) return a + b;
  return st_float_of(st_next_bits<st_u32>(st_bits(a), st_bits(b), a == b, a < b));
}
ST_FN double st_nextafter(double a, double b) {
  if (a != a || b != b) return a + b;
  return st_double_of(st_next_bits<st_u64>(st_bits(a), st_bits(b), a == b, a < b));
}
ST_FN st_f16 st_nextafter(st_f16 a, st_f16 b) {
  float x = st_to_float(a), y = st_to_float(b);
  if (x != x || y != y) return st_f16{0x7E00};
  if (x == y) return a;
  return st_f16{st_next_bits<st_u16>(a.bits, b.bits, x == y, x < y)};
}
ST_FN st_bf16 st_nextafter(st_bf16 a, st_bf16 b) {
  float x = st_to_float(a), y = st_to_float(b);
  if (x != x || y != y) return st_bf16{0x7FC0};
  if (x == y) return a;
  return st_bf16{st_next_bits<st_u16>(a.bits, b.bits, x == y, x < y)};
}
template <class T>
ST_FN T st_spacing(T a) {
  if (!st_isfinite(a)) return st_nan_of(a);
  if (a == 0) return st_nextafter((T)0, st_infinity_of(a));
  T away = st_copysign(st_infinity_of(a), a);
  return st_nextafter(a, away) - a;
}
// As NumPy's for float16: never negative, and below a negative power of two the smaller step
// towards zero.
template <int kMantissa>
ST_FN st_u16 st_spacing_bits(st_u16 bits) {
  const int infinity = 0x7FFF >> kMantissa << kMantissa;
  int magnitude = bits & 0x7FFF;
  int exponent = magnitude >> kMantissa;
  if (magnitude >= infinity) return (st_u16)(infinity | 1 << (kMantissa - 1));
  if (magnitude == infinity - 1 && !(bits >> 15)) return (st_u16)infinity;
  bool halved = (bits >> 15) && (magnitude & ((1 << kMantissa) - 1)) == 0 && exponent > 1;
  int unit = exponent - kMantissa - (halved ? 1 : 0);
  if (unit > 0) return (st_u16)(unit << kMantissa);
  if (exponent == 0) return 1;
  return (st_u16)(1 << (unit + kMantissa - 1));
}
ST_FN st_f16 st_spacing(st_f16 a) { return st_f16{st_spacing_bits<10>(a.bits)}; }
ST_FN st_bf16 st_spacing(st_bf16 a) { return st_bf16{st_spacing_bits<7>(a.bits)}; }
