// Elementary functions without branches, so that loops over them become vector code, and with every
// fused operation written out, so that an element's result does not depend on its place in a
// vector. Denormals, infinities and NaNs as in IEEE 754.
#pragma once

#include "stride_math_tables.h"
#include "stride_two_over_pi.h"

// Splitting a product into its rounded value and its error must not itself be fused.
#pragma clang fp contract(off)

namespace __stride {

STRIDE_DEVICE uint32_t bits(float x) { return __builtin_bit_cast(uint32_t, x); }
STRIDE_DEVICE uint64_t bits(double x) { return __builtin_bit_cast(uint64_t, x); }
STRIDE_DEVICE float from_bits(uint32_t x) { return __builtin_bit_cast(float, x); }
STRIDE_DEVICE double from_bits(uint64_t x) { return __builtin_bit_cast(double, x); }
STRIDE_DEVICE float absolute(float x) { return __builtin_fabsf(x); }
STRIDE_DEVICE double absolute(double x) { return __builtin_fabs(x); }
STRIDE_DEVICE float nearest(float x) { return __builtin_rintf(x); }
STRIDE_DEVICE double nearest(double x) { return __builtin_rint(x); }
STRIDE_DEVICE float root(float x) { return __builtin_sqrtf(x); }
STRIDE_DEVICE double root(double x) { return __builtin_sqrt(x); }
STRIDE_DEVICE float with_sign(float x, float s) { return __builtin_copysignf(x, s); }
STRIDE_DEVICE double with_sign(double x, double s) { return __builtin_copysign(x, s); }
STRIDE_DEVICE bool is_nan(double x) { return x != x; }

// 2^n for n in the range of normal exponents.
STRIDE_DEVICE float power_of_two(float n) { return from_bits((uint32_t)((int)n + 127) << 23); }
STRIDE_DEVICE double power_of_two(double n) { return from_bits((bits(n + 0x1.8p52) + 1023) << 52); }
// ---- exponentials

template <class T>
struct Exponent;
template <>
struct Exponent<float> {
  static constexpr float kMax = 130, kMin = -155, kLn2 = 0x1.62e43p-1f, kLn2Low = -0x1.05c61p-29f,
                         kLog2e = 0x1.715476p+0f, kLn2Wide = 0x1.62e42fefa39efp-1;
  // 1.5 * 2^n is more than half of the least denormal for n from kLeast on; power_of_two(kZero) is
  // 0.
  static constexpr float kLeast = -150, kZero = -127;
  static constexpr float kLog2Of10 = 0x1.a934fp+1f, kLog10Of2 = 0x1.344136p-2f,
                         kLog10Of2Low = -0x1.ec10cp-27f, kLn10 = 0x1.26bb1cp+1f,
                         kLn10Low = -0x1.12aabap-25f;
};
template <>
struct Exponent<double> {
  static constexpr double kMax = 1026, kMin = -1080, kLn2 = 0x1.62e42fefa39efp-1,
                          kLn2Low = 0x1.abc9e3b39803fp-56, kLog2e = 0x1.71547652b82fep+0;
  static constexpr double kLeast = -1075, kZero = -1023;
  static constexpr double kLog2Of10 = 0x1.a934f0979a371p+1, kLog10Of2 = 0x1.34413509f79ffp-2,
                          kLog10Of2Low = -0x1.9dc1da994fd21p-59, kLn10 = 0x1.26bb1bbb55516p+1,
                          kLn10Low = -0x1.f48ad494ea3e9p-53;
};

// x * 2^n for x in [0.5, 1.5), in two steps, so that the result may be a denormal. |n| is at most
// twice the largest exponent. Where the result is zero both powers are: a product that rounds to
// zero costs a processor some 150 cycles, as each denormal does.
template <class T>
STRIDE_DEVICE T scale(T x, T n) {
  n = n < Exponent<T>::kLeast ? 2 * Exponent<T>::kZero : n;
  T half = nearest(n * (T)0.5);
  return x * power_of_two(half) * power_of_two(n - half);
}

// exp(r) for |r| <= ln(2)/2 (r_low: what rounding r lost).
template <class T>
STRIDE_DEVICE T exp_small(T r, T r_low) {
  T a = r + r_low;
  T lost = (r - a) + r_low;
  return (T)1 + (a + fused(a * a, exp_tail(a), lost));
}
// Arguments past the range end in infinity or zero through the clamped power of two.
template <class T>
STRIDE_DEVICE T limit(T x, T low, T high) {
  x = x > high ? high : x;
  return x < low ? low : x;
}
// exp(x) * 2^more, which may be in range where exp(x) is not.
template <class T>
STRIDE_DEVICE T exp_times_(T x, T more) {
  typedef Exponent<T> E;
  T y = limit(x, E::kMin * (T)0.7, E::kMax * (T)0.7);
  T n = nearest(y * E::kLog2e);
  T high = fused(-n, E::kLn2, y);
  return scale(exp_small(high, -n * E::kLn2Low), n + more);
}
template <class T>
STRIDE_DEVICE T exp_(T x) {
  return exp_times_(x, (T)0);
}
template <class T>
STRIDE_DEVICE T exp2_(T x) {
  typedef Exponent<T> E;
  T y = limit(x, E::kMin, E::kMax);
  T n = nearest(y);
  T f = y - n;
  T r = f * E::kLn2;
  return scale(exp_small(r, fused(f, E::kLn2, -r) + f * E::kLn2Low), n);
}
template <class T>
STRIDE_DEVICE T exp10_(T x) {
  typedef Exponent<T> E;
  T y = limit(x, E::kMin * (T)0.302, E::kMax * (T)0.302);
  T n = nearest(y * E::kLog2Of10);
  T f = fused(-n, E::kLog10Of2, y);
  T f_low = -n * E::kLog10Of2Low;
  T r = f * E::kLn10;
  return scale(exp_small(r, fused(f, E::kLn10, -r) + fused(f, E::kLn10Low, f_low * E::kLn10)), n);
}
template <class T>
STRIDE_DEVICE T expm1_(T x) {
  typedef Exponent<T> E;
  T y = limit(x, (T)-60, sizeof(T) == 4 ? (T)89.5 : (T)710.5);
  T n = nearest(y * E::kLog2e);
  T high = fused(-n, E::kLn2, y);
  T r = fused(-n, E::kLn2Low, high);
  T low = fused(-n, E::kLn2Low, high - r);
  T small = r + fused(r * r, exp_tail(r), low);
  // Half of the power, doubled at the end: n may be one past the largest exponent.
  T power = power_of_two(n > E::kMax - 3 ? n - 4 : n - 1);
  T result = fused(power, small, power - (n > E::kMax - 3 ? (T)0 : (T)0.5));
  result = n > E::kMax - 3 ? result * 16 : result * 2;
  return x == 0 ? x : result;
}

// ---- logarithms

template <class T>
struct Parts;
template <>
struct Parts<float> {
  typedef int Int;
  static constexpr int kShift = 23, kBias = 127;
  static constexpr uint32_t kRootHalf = 0x3f3504f3u, kMantissa = 0x007fffffu;
  static constexpr float kTiny = 0x1p-126f, kRaise = 0x1p24f, kRaised = 24;
};
template <>
struct Parts<double> {
  typedef int64_t Int;
  static constexpr int kShift = 52, kBias = 1023;
  static constexpr uint64_t kRootHalf = 0x3fe6a09e667f3bcdul, kMantissa = 0xffffffffffffful;
  static constexpr double kTiny = 0x1p-1022, kRaise = 0x1p54, kRaised = 54;
};
// x = m * 2^e with m in [sqrt(1/2), sqrt(2)), for positive finite x.
template <class T>
STRIDE_DEVICE T split_exponent(T x, T& e) {
  typedef Parts<T> P;
  bool tiny = x < P::kTiny;
  auto raw = bits(tiny ? x * P::kRaise : x) - P::kRootHalf;
  e = (T)((typename P::Int)raw >> P::kShift) - (tiny ? P::kRaised : (T)0);
  return from_bits((raw & P::kMantissa) + P::kRootHalf);
}
// Zero, negative numbers, infinity and NaN, as every logarithm has them.
template <class T>
STRIDE_DEVICE T log_edges(T x, T result) {
  result = x == (T)__builtin_inf() ? x : result;
  result = x == 0 ? -(T)__builtin_inf() : result;
  return (x < 0) | (x != x) ? (T)__builtin_nan("") : result;
}
// log(1 + f) less f, for 1 + f in [sqrt(1/2), sqrt(2)].
template <class T>
STRIDE_DEVICE T log1p_rest(T f) {
  T s = f / (2 + f);
  T z = s * s;
  T half_square = (T)0.5 * f * f;
  return s * fused(z, log_tail(z), half_square) - half_square;
}
template <class T>
STRIDE_DEVICE T log_(T x) {
  typedef Exponent<T> E;
  T e, f = split_exponent(x, e) - 1;
  T rest = fused(e, E::kLn2Low, log1p_rest(f));
  T big = e * E::kLn2;
  T big_low = fused(e, E::kLn2, -big);
  T sum = big + f;
  T lost = absolute(big) > absolute(f) ? (big - sum) + f : (f - sum) + big;
  return log_edges(x, sum + (rest + (lost + big_low)));
}
// log(x) / log(base) from the two parts of 1 / log(base).
template <class T>
STRIDE_DEVICE T log_in_base(T f, T inverse, T inverse_low) {
  T rest = log1p_rest(f);
  T high = f * inverse;
  T low = fused(f, inverse, -high) + fused(f, inverse_low, rest * inverse);
  return high + low;
}
STRIDE_DEVICE double log2_(double x) {
  double e, f = split_exponent(x, e) - 1;
  return log_edges(x, e + log_in_base(f, 0x1.71547652b82fep+0, 0x1.777d0ffda0d24p-56));
}
STRIDE_DEVICE float log2_(float x) {
  float e, f = split_exponent(x, e) - 1;
  return log_edges(x, e + log_in_base(f, 0x1.715476p+0f, 0x1.4ae0cp-26f));
}
STRIDE_DEVICE double log10_(double x) {
  double e, f = split_exponent(x, e) - 1;
  double tail = log_in_base(f, 0x1.bcb7b1526e50ep-2, 0x1.95355baaafad3p-57);
  return log_edges(x, fused(e, 0x1.34413509f79ffp-2, fused(e, -0x1.9dc1da994fd21p-59, tail)));
}
STRIDE_DEVICE float log10_(float x) {
  float e, f = split_exponent(x, e) - 1;
  float tail = log_in_base(f, 0x1.bcb7b2p-2f, -0x1.5b235ep-27f);
  return log_edges(x, fused(e, 0x1.344136p-2f, fused(e, -0x1.ec10cp-27f, tail)));
}
template <class T>
STRIDE_DEVICE T log1p_(T x) {
  typedef Exponent<T> E;
  T u = 1 + x;
  T lost = absolute(x) < 1 ? x - (u - 1) : 1 - (u - x);
  T e, f = split_exponent(u, e) - 1;
  T rest = fused(e, E::kLn2Low, log1p_rest(f)) + lost / u;
  T big = e * E::kLn2;
  T result = big + (f + (rest + fused(e, E::kLn2, -big)));
  result = log_edges(u, result);
  return (absolute(x) < (sizeof(T) == 4 ? (T)0x1p-26 : (T)0x1p-55)) ? x : result;
}

// ---- power

// log2 of positive finite x in two doubles, good to about 2^-64 of its size.
STRIDE_DEVICE double log2_wide(double x, double& low) {
  double e, m = split_exponent(x, e);
  double f = m - 1, d = m + 1;
  double part = d - m;
  double d_low = (m - (d - part)) + (1 - part);
  double s = f / d;
  double s_low = (fused(-s, d, f) - s * d_low) / d;
  double z = s * s;
  double z_low = fused(s, s, -z) + 2 * s * s_low;
  // p = 2/3 + z * rest(z), then y = 2 s + s z p.
  double q = z * log_tail_rest(z);
  double p = 0x1.5555555555555p-1 + q;
  double p_low =
      (0x1.5555555555555p-1 - p) + q + 0x1.5555555555555p-55 + z_low * 0x1.999999999999ap-2;
  double w = z * p;
  double w_low = fused(z, p, -w) + fused(z, p_low, z_low * p);
  double v = s * w;
  double v_low = fused(s, w, -v) + fused(s, w_low, s_low * w);
  double y = 2 * s + v;
  double y_low = (2 * s - y) + v + (v_low + 2 * s_low);
  double t = y * 0x1.71547652b82fep+0;
  double t_low = fused(y, 0x1.71547652b82fep+0, -t) +
                 fused(y, 0x1.777d0ffda0d24p-56, y_low * 0x1.71547652b82fep+0);
  double sum = e + t;
  low = (absolute(e) > absolute(t) ? (e - sum) + t : (t - sum) + e) + t_low;
  return sum;
}
STRIDE_DEVICE double pow_positive(double x, double y) {
  double low, high = log2_wide(x, low);
  // Past this the result is infinity, zero or one whatever y is; staying in range keeps the
  // two-part product whole.
  double yy = limit(y, -0x1p66, 0x1p66);
  double p = high * yy;
  double p_low = fused(high, yy, -p) + low * yy;
  bool outside = !(absolute(p) < 1100);
  double q = outside ? with_sign(1100.0, p) : p;
  double n = nearest(q);
  double f = (q - n) + (outside ? 0.0 : p_low);
  double f_low = ((q - n) - f) + (outside ? 0.0 : p_low);
  double r = f * 0x1.62e42fefa39efp-1;
  double r_low = fused(f, 0x1.62e42fefa39efp-1, -r) +
                 fused(f, 0x1.abc9e3b39803fp-56, f_low * 0x1.62e42fefa39efp-1);
  n = limit(n, -1090.0, 1030.0);
  return scale(exp_small(r, r_low), n);
}
STRIDE_DEVICE double pow_edges(double x, double y, double result) {
  const double inf = __builtin_inf();
  double a = absolute(x), b = absolute(y);
  bool whole = (b >= 0x1p53) | (nearest(y) == y);
  double half = y * 0.5;
  bool odd = whole & (b < 0x1p53) & (nearest(half) != half);
  double away = y > 0 ? inf : 0.0, toward = y > 0 ? 0.0 : inf;
  result = a == 0 ? toward : result;
  result = a == inf ? away : result;
  result = b == inf ? (a > 1 ? away : toward) : result;
  result = (x < 0) & !whole & (a != inf) & (b != inf) ? (double)__builtin_nan("") : result;
  bool negative = (bits(x) >> 63) != 0;
  result = negative & odd ? -result : result;
  result = (x != x) | (y != y) ? x + y : result;
  result = (a == 1) & (b == inf) ? 1.0 : result;
  return (x == 1) | (y == 0) ? 1.0 : result;
}
STRIDE_DEVICE double pow_(double x, double y) {
  double a = absolute(x);
  return pow_edges(x, y, pow_positive((a == 0) | !(a < (double)__builtin_inf()) ? 1.0 : a, y));
}
STRIDE_DEVICE float pow_(float x, float y) {
  double a = absolute((double)x);
  double e, f = split_exponent((a == 0) | !(a < (double)__builtin_inf()) ? 1.0 : a, e) - 1;
  double log2_of = e + log_in_base(f, 0x1.71547652b82fep+0, 0x1.777d0ffda0d24p-56);
  return (float)pow_edges(
      x, y, exp2_(limit(log2_of * limit((double)y, -0x1p40, 0x1p40), -1000.0, 1000.0)));
}

// ---- circular functions

// x = (n + f) * pi/2; sin and cos need n modulo 4 (in the low bits of `quadrant`) and f * pi/2 in
// two parts.
struct Angle {
  double high, low;
  uint64_t quadrant;
};
// Arguments whose last bit is worth more than 2^20 are a whole multiple of a power of two, and that
// power times 2/pi may be replaced by its remainder modulo 4: exact for every float, with no table
// to look up.
STRIDE_DEVICE Angle reduce_float(float x) {
  double wide = x, a = absolute(wide);
  double high = 0x1.45f306dc9c883p-1, low = -0x1.6b01ec5417056p-55, down = 1;
  high = a >= 0x1p43 ? 0x1.b727220a94fe1p-3 : high;
  low = a >= 0x1p43 ? 0x1.d5f47d4d37703p-58 : low;
  down = a >= 0x1p43 ? 0x1p-20 : down;
  high = a >= 0x1p64 ? 0x1.1054a7f09d5f4p-1 : high;
  low = a >= 0x1p64 ? 0x1.f534ddc0db629p-55 : low;
  down = a >= 0x1p64 ? 0x1p-41 : down;
  high = a >= 0x1p85 ? -0x1.80f62a0b82b2dp+0 : high;
  low = a >= 0x1p85 ? 0x1.dc0db6295993cp-54 : low;
  down = a >= 0x1p85 ? 0x1p-62 : down;
  high = a >= 0x1p106 ? -0x1.4170565911f92p+0 : high;
  low = a >= 0x1p106 ? -0x1.3ad4cd8778df8p-54 : low;
  down = a >= 0x1p106 ? 0x1p-83 : down;
  double y = wide * down;
  double p = y * high;
  double error = fused(y, high, -p);
  double shifted = p + 0x1.8p52;
  double f = (p - (shifted - 0x1.8p52)) + fused(y, low, error);
  return Angle{f * 0x1.921fb54442d18p+0, 0, bits(shifted)};
}
STRIDE_DEVICE Angle reduce_double(double x) {
  double a = absolute(x);
  int exponent = (int)(bits(a) >> 52) - 1023 - 52;
  int row = exponent >> 3;
  row = a < 0x1p52 ? 0 : row;
  row = row > 121 ? 0 : row;
  const double* t = kTwoOverPi[row];
  // Two steps: 2^-968 times a number near 2^1023 is normal, and so are both factors.
  double y =
      x * from_bits((uint64_t)(1023 - 4 * row) << 52) * from_bits((uint64_t)(1023 - 4 * row) << 52);
  double p = y * t[0];
  double p_low = fused(y, t[0], -p);
  double turns = nearest(p * 0.25) * 4;
  double m = fused(-1.0, turns, p);  // exact: p modulo 4
  double q = y * t[1];
  double q_low = fused(y, t[1], -q);
  // m, p_low and q summed with their errors.
  double s = m + p_low;
  double v = s - m;
  double s_low = (m - (s - v)) + (p_low - v);
  // s may still be large when p_low was.
  double turns2 = nearest(s * 0.25) * 4;
  s -= turns2;
  double u = s + q;
  double w = u - s;
  double u_low = (s - (u - w)) + (q - w);
  double shifted = u + 0x1.8p52;
  double f = u - (shifted - 0x1.8p52);
  double f_low = (u_low + s_low) + fused(y, t[2], q_low);
  double g = f + f_low;
  double g_low = (f - g) + f_low;
  double high = g * 0x1.921fb54442d18p+0;
  double low = fused(g, 0x1.921fb54442d18p+0, -high) +
               fused(g, 0x1.1a62633145c07p-54, g_low * 0x1.921fb54442d18p+0);
  return Angle{high, low, bits(shifted)};
}
STRIDE_DEVICE double sine_of(double r, double low) {
  double z = r * r;
  double tail = fused(r * z, sine_tail(z), low - 0.5 * z * low);
  return r + tail;
}
STRIDE_DEVICE double cosine_of(double r, double low) {
  double z = r * r;
  double half = 0.5 * z;
  double w = 1 - half;
  return w + (((1 - w) - half) + (fused(z * z, cosine_tail(z), -r * low)));
}
STRIDE_DEVICE float sine_of(float r) {
  float z = r * r;
  return fused(r * z, sine_tail(z), r);
}
STRIDE_DEVICE float cosine_of(float r) {
  float z = r * r;
  float half = 0.5f * z;
  float w = 1 - half;
  return w + fused(z * z, cosine_tail(z), (1 - w) - half);
}
template <class T>
STRIDE_DEVICE T choose(T sine, T cosine, uint32_t quadrant) {
  T value = (quadrant & 1) != 0 ? cosine : sine;
  return (quadrant & 2) != 0 ? -value : value;
}
STRIDE_DEVICE float sin_(float x) {
  Angle a = reduce_float(x);
  float r = (float)a.high;
  float result = choose(sine_of(r), cosine_of(r), (uint32_t)a.quadrant);
  return x == 0 ? x : result;
}
STRIDE_DEVICE float cos_(float x) {
  Angle a = reduce_float(x);
  float r = (float)a.high;
  return choose(sine_of(r), cosine_of(r), (uint32_t)a.quadrant + 1);
}
STRIDE_DEVICE double sin_(double x) {
  Angle a = reduce_double(x);
  double result = choose(sine_of(a.high, a.low), cosine_of(a.high, a.low), (uint32_t)a.quadrant);
  return absolute(x) < 0x1p-27 ? x : result;
}
STRIDE_DEVICE double cos_(double x) {
  Angle a = reduce_double(x);
  return choose(sine_of(a.high, a.low), cosine_of(a.high, a.low), (uint32_t)a.quadrant + 1);
}
STRIDE_DEVICE double tan_(double x) {
  Angle a = reduce_double(x);
  double s = sine_of(a.high, a.low), c = cosine_of(a.high, a.low);
  bool odd = (a.quadrant & 1) != 0;
  double result = (odd ? -c : s) / (odd ? s : c);
  return absolute(x) < 0x1p-27 ? x : result;
}
STRIDE_DEVICE float tan_(float x) {
  Angle a = reduce_float(x);
  float r = (float)a.high;
  float s = sine_of(r), c = cosine_of(r);
  bool odd = (a.quadrant & 1) != 0;
  float result = (odd ? -c : s) / (odd ? s : c);
  return x == 0 ? x : result;
}

// ---- inverse circular functions

STRIDE_DEVICE double atan2_(double y, double x) {
  double a = absolute(y), b = absolute(x);
  bool both_infinite = (a == (double)__builtin_inf()) & (b == (double)__builtin_inf());
  a = both_infinite ? 1.0 : a;
  b = both_infinite ? 1.0 : b;
  // Keeps sums below from overflowing and quotients of denormals whole.
  double larger = a > b ? a : b;
  double factor = larger > 0x1p1000 ? 0x1p-60 : larger < 0x1p-900 ? 0x1p110 : 1.0;
  a *= factor;
  b *= factor;
  bool swap = a > b;
  double top = swap ? b : a, bottom = swap ? a : b;
  bool fold = top > bottom * 0x1.a827999fcef32p-2;
  double up = fold ? top - bottom : top, down = fold ? top + bottom : bottom;
  double t = down == 0 ? 0.0 : up / down;
  double t_low = down == 0 ? 0.0 : fused(-t, down, up) / down;
  t_low = t_low == t_low ? t_low : 0.0;
  double z = t * t;
  double base = fold ? 0x1.921fb54442d18p-1 : 0.0, base_low = fold ? 0x1.1a62633145c07p-55 : 0.0;
  double tail = fused(t * z, arc_tail(z), base_low + t_low);
  double sign = 1;
  // pi/2 - (base + t + tail), and pi - that, without rounding twice.
  base = swap ? 0x1.921fb54442d18p+0 - base : base;
  base_low = swap ? 0x1.1a62633145c07p-54 : 0.0;
  sign = swap ? -1.0 : 1.0;
  bool left = (bits(x) >> 63) != 0;
  base = left ? 0x1.921fb54442d18p+1 - base : base;
  base_low = left ? 0x1.1a62633145c07p-53 - base_low : base_low;
  sign = left ? -sign : sign;
  double result = base + (fused(sign, t, base_low) + sign * tail);
  double sum = base + sign * t;
  double lost = (base - sum) + sign * t;
  result = base == 0 ? t + tail : sum + (lost + (base_low + sign * tail));
  result = (x != x) | (y != y) ? x + y : result;
  return with_sign(result, y);
}
// For floats, whose sums and quotients a double holds without overflow, for a result in single
// precision.
STRIDE_DEVICE float atan2_single(double y, double x) {
  double a = absolute(y), b = absolute(x);
  bool both_infinite = (a == (double)__builtin_inf()) & (b == (double)__builtin_inf());
  a = both_infinite ? 1.0 : a;
  b = both_infinite ? 1.0 : b;
  bool swap = a > b;
  double top = swap ? b : a, bottom = swap ? a : b;
  bool fold = top > bottom * 0x1.a827999fcef32p-2;
  double up = fold ? top - bottom : top, down = fold ? top + bottom : bottom;
  double t = down == 0 ? 0.0 : up / down;
  double z = t * t;
  double angle = fused(t * z, short_arc_tail(z), t) + (fold ? 0x1.921fb54442d18p-1 : 0.0);
  angle = swap ? 0x1.921fb54442d18p+0 - angle : angle;
  angle = (bits(x) >> 63) != 0 ? 0x1.921fb54442d18p+1 - angle : angle;
  angle = (x != x) | (y != y) ? x + y : angle;
  return (float)with_sign(angle, y);
}
STRIDE_DEVICE float asin_single(double x) { return atan2_single(x, root((1 - x) * (1 + x))); }
STRIDE_DEVICE float acos_single(double x) { return 2 * atan2_single(root(1 - x), root(1 + x)); }
STRIDE_DEVICE double atan_(double x) {
  double result = atan2_(x, 1.0);
  return absolute(x) < 0x1p-27 ? x : result;
}
STRIDE_DEVICE double asin_(double x) {
  double result = atan2_(x, root((1 - x) * (1 + x)));
  return absolute(x) < 0x1p-27 ? x : result;
}
// Corrects the rounding of the differences and the roots: the angle's derivative by each leg is the
// other leg, over the sum of the squares, which is 2.
STRIDE_DEVICE double acos_(double x) {
  double down = 1 - x, down_low = -x - (down - 1);
  double up = 1 + x, up_low = x - (up - 1);
  double y = root(down), w = root(up);
  double y_low = y > 0 ? (fused(-y, y, down) + down_low) / (2 * y) : 0.0;
  double w_low = w > 0 ? (fused(-w, w, up) + up_low) / (2 * w) : 0.0;
  return 2 * atan2_(y, w) + (w * y_low - y * w_low);
}

// ---- hyperbolic functions

// e / (e + n) with one rounding: what the sum lost is made up for.
template <class T>
STRIDE_DEVICE T share(T e, T n) {
  T sum = e + n;
  T lost = e > n ? n - (sum - e) : e - (sum - n);
  T q = e / sum;
  return q + fused(-q, lost, fused(-q, sum, e)) / sum;
}
// (sinh(x) - x) / x^3 of z = x^2 up to 1: Taylor's terms.
STRIDE_DEVICE float sinh_tail(float z) {
  float p = (float)(1 / 39916800.0);
  p = fused(p, z, (float)(1 / 362880.0));
  p = fused(p, z, (float)(1 / 5040.0));
  p = fused(p, z, (float)(1 / 120.0));
  return fused(p, z, (float)(1 / 6.0));
}
STRIDE_DEVICE double sinh_tail(double z) {
  double p = 1 / 51090942171709440000.0;
  p = fused(p, z, 1 / 121645100408832000.0);
  p = fused(p, z, 1 / 355687428096000.0);
  p = fused(p, z, 1 / 1307674368000.0);
  p = fused(p, z, 1 / 6227020800.0);
  p = fused(p, z, 1 / 39916800.0);
  p = fused(p, z, 1 / 362880.0);
  p = fused(p, z, 1 / 5040.0);
  p = fused(p, z, 1 / 120.0);
  return fused(p, z, 1 / 6.0);
}
template <class T>
STRIDE_DEVICE T sinh_(T x) {
  T a = absolute(x);
  // Near 0 the sum of two shares would round three times.
  T small = a < 1 ? a : (T)0;
  T near_zero = fused(small * (small * small), sinh_tail(small * small), small);
  bool big = a > (sizeof(T) == 4 ? (T)20 : (T)40);
  T e = expm1_(big ? (T)0 : a);
  T result = big ? exp_times_(a, (T)-1) : (T)0.5 * (e + share(e, (T)1));
  result = a < 1 ? near_zero : result;
  return x == 0 || x != x ? x : with_sign(result, x);
}
template <class T>
STRIDE_DEVICE T cosh_(T x) {
  T half = exp_times_(absolute(x), (T)-1);
  T result = half + (T)0.25 / half;
  return x != x ? x : result;
}
template <class T>
STRIDE_DEVICE T tanh_(T x) {
  T a = absolute(x);
  T result = share(expm1_(a > 22 ? (T)44 : 2 * a), (T)2);
  result = a > 22 ? (T)1 : result;
  return x == 0 || x != x ? x : with_sign(result, x);
}
STRIDE_DEVICE double asinh_(double x) {
  double a = absolute(x);
  bool big = a > 0x1p28;
  double b = big ? 1.0 : a;
  double result = log1p_(b + b * b / (1 + root(fused(b, b, 1.0))));
  result = big ? log_(a) + 0x1.62e42fefa39efp-1 : result;
  return x == 0 || x != x ? x : with_sign(result, x);
}
STRIDE_DEVICE double acosh_(double x) {
  bool big = x > 0x1p28;
  double t = big ? 1.0 : x - 1;
  double result = log1p_(t + root(fused(t, t, 2 * t)));
  result = big ? log_(x) + 0x1.62e42fefa39efp-1 : result;
  return x < 1 ? (double)__builtin_nan("") : result;
}
STRIDE_DEVICE double atanh_(double x) {
  double a = absolute(x);
  double result = 0.5 * log1p_(2 * a / (1 - a));
  return x == 0 || x != x ? x : with_sign(result, x);
}

// ---- roots

STRIDE_DEVICE double cbrt_(double x) {
  double a = absolute(x);
  bool tiny = a < 0x1p-1022;
  bool huge = a > 0x1p1000;
  double scaled = tiny ? a * 0x1p54 : huge ? a * 0x1p-54 : a;
  bool edge = (a == 0) | !(a < (double)__builtin_inf());
  scaled = edge ? 1.0 : scaled;
  // A third of the exponent, to five bits; each step then triples the digits.
  uint64_t third = (uint64_t)((double)(bits(scaled) >> 20) * (1.0 / 3)) << 20;
  double y = from_bits(third + 0x2a9f7893782da1ceul);
  for (int i = 0; i < 3; ++i) {
    double cube = y * y * y;
    y = y * ((cube + 2 * scaled) / (2 * cube + scaled));
  }
  double square = y * y, square_low = fused(y, y, -square);
  double error = fused(square, y, -scaled) + square_low * y;
  y = y - error / (3 * square);
  y = tiny ? y * 0x1p-18 : huge ? y * 0x1p18 : y;
  return edge ? x : with_sign(y, x);
}
STRIDE_DEVICE double hypot_(double x, double y) {
  double a = absolute(x), b = absolute(y);
  double big = a > b ? a : b, small = a > b ? b : a;
  double factor = big > 0x1p500 ? 0x1p-600 : big < 0x1p-450 ? 0x1p600 : 1.0;
  double back = big > 0x1p500 ? 0x1p600 : big < 0x1p-450 ? 0x1p-600 : 1.0;
  big *= factor;
  small *= factor;
  double square = big * big;
  double sum = fused(small, small, square);
  double h = root(sum);
  // One correction with the exact squares.
  double rest = fused(big, big, -square) + (fused(-h, h, square) + small * small);
  h = h == 0 || !(h < (double)__builtin_inf()) ? h : h + rest / (2 * h);
  double result = h * back;
  return (a == (double)__builtin_inf()) | (b == (double)__builtin_inf()) ? (double)__builtin_inf()
                                                                         : result;
}

}  // namespace __stride

#ifdef __STRIDE_CONTRACT__
#pragma clang fp contract(fast)
#endif
