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
  // The same in two parts of which the first has 42 bits: its products with exponents are exact.
  static constexpr double kLn2Part = 0x1.62e42fefa38p-1, kLn2Rest = 0x1.ef35793c7673p-45;
  // The greatest arguments whose results are finite, and one whose results are zero.
  static constexpr double kMostExp = 0x1.62e42fefa39efp+9, kMostExp10 = 0x1.34413509f79fep+8,
                          kNoExp = -746, kNoExp2 = -1076, kNoExp10 = -324;
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

// The sum of this and a float below 2^22 has that float's nearest whole number in its low bits.
constexpr float kRound = 0x1.8p23f;
STRIDE_DEVICE int whole_of(float sum) { return (int)(bits(sum) - bits(kRound)); }
STRIDE_DEVICE float scale(float x, int n) {
  const int half = n >> 1;
  return x * from_bits((uint32_t)(half + 127) << 23) * from_bits((uint32_t)(n - half + 127) << 23);
}

// exp(r) for |r| <= ln(2)/2 (r_low: what rounding r lost).
template <class T>
STRIDE_DEVICE T exp_small(T r, T r_low) {
  T a = r + r_low;
  T lost = (r - a) + r_low;
  return (T)1 + (a + fused(a * a, exp_tail(a), lost));
}
// The sum of this and a double below 2^51 has that double's nearest whole number in its low bits.
constexpr double kRoundDouble = 0x1.8p52;
// p * 2^n for sum = n + kRoundDouble, p in [1/2, 2) and n from -1100 on; up to 1024 where p < 1.
STRIDE_DEVICE double scale_by(double p, double sum) {
  bool small = sum < kRoundDouble - 1000;  // the result may be a denormal
  uint64_t whole = bits(p) + (bits(sum) << 52);
  double result = from_bits(small ? whole + ((uint64_t)100 << 52) : whole);
  return small ? result * 0x1p-100 : result;
}
// Arguments past the range end in infinity or zero through the clamped power of two.
template <class T>
STRIDE_DEVICE T limit(T x, T low, T high) {
  x = x > high ? high : x;
  return x < low ? low : x;
}
// exp(x) * 2^more, which may be in range where exp(x) is not.
STRIDE_DEVICE double exp_times_(double x, double more) {
  typedef Exponent<double> E;
  bool none = x < E::kNoExp;
  double y = none ? 0.0 : x;
  double sum = fused(y, E::kLog2e, kRoundDouble), n = sum - kRoundDouble;
  double r = fused(-n, E::kLn2Rest, fused(-n, E::kLn2Part, y));
  double result = scale_by(1 + fused(r * r, exp_tail(r), r), sum + more);
  result = none ? 0.0 : result;
  return x <= E::kMostExp - more * E::kLn2 ? result : x * __builtin_inf();
}
STRIDE_DEVICE float exp_times_(float x, float more) {
  typedef Exponent<float> E;
  float y = limit(x, E::kMin * 0.7f, E::kMax * 0.7f);
  float sum = fused(y, E::kLog2e, kRound), n = sum - kRound;
  float r = fused(-n, E::kLn2Low, fused(-n, E::kLn2, y));
  float p = 1 + fused(r * r, exp_tail(r), r);
  return scale(n + more < E::kLeast ? 0.0f : p, whole_of(sum) + (int)more);
}
template <class T>
STRIDE_DEVICE T exp_(T x) {
  return exp_times_(x, (T)0);
}
STRIDE_DEVICE double exp2_(double x) {
  typedef Exponent<double> E;
  bool none = x < E::kNoExp2;
  double y = none ? 0.0 : x;
  double sum = y + kRoundDouble;
  double r = (y - (sum - kRoundDouble)) * E::kLn2;
  double result = scale_by(1 + fused(r * r, exp_tail(r), r), sum);
  result = none ? 0.0 : result;
  return x < 1024 ? result : x * __builtin_inf();
}
STRIDE_DEVICE float exp2_(float x) {
  typedef Exponent<float> E;
  float y = limit(x, E::kMin, E::kMax);
  float sum = y + kRound, n = sum - kRound;
  float p = exp2_small(y - n);
  return scale(n < E::kLeast ? 0.0f : p, whole_of(sum));
}
STRIDE_DEVICE double exp10_(double x) {
  typedef Exponent<double> E;
  bool none = x < E::kNoExp10;
  double y = none ? 0.0 : x;
  double sum = fused(y, E::kLog2Of10, kRoundDouble), n = sum - kRoundDouble;
  double f = fused(-n, E::kLog10Of2, y), f_low = -n * E::kLog10Of2Low;
  double r = f * E::kLn10;
  double r_low = fused(f, E::kLn10, -r) + fused(f, E::kLn10Low, f_low * E::kLn10);
  double result = scale_by(exp_small(r, r_low), sum);
  result = none ? 0.0 : result;
  return x <= E::kMostExp10 ? result : x * __builtin_inf();
}
STRIDE_DEVICE float exp10_(float x) {
  typedef Exponent<float> E;
  float y = limit(x, E::kMin * 0.302f, E::kMax * 0.302f);
  float sum = fused(y, E::kLog2Of10, kRound), n = sum - kRound;
  float f = fused(-n, E::kLog10Of2, y), f_low = -n * E::kLog10Of2Low;
  float r = f * E::kLn10;
  float r_low = fused(f, E::kLn10, -r) + fused(f, E::kLn10Low, f_low * E::kLn10);
  float p = exp_small(r, r_low);
  return scale(n < E::kLeast ? 0.0f : p, whole_of(sum));
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
  return absolute(x) < 0x1p-55 ? x : result;
}

STRIDE_DEVICE float expm1_(float x) {
  typedef Exponent<float> E;
  float y = limit(x, -18.0f, 89.0f);
  float sum = fused(y, E::kLog2e, kRound), n = sum - kRound;
  float r = fused(-n, E::kLn2Low, fused(-n, E::kLn2, y));
  float small = fused(r * r, exp_tail(r), r);
  // Half of the power, doubled at the end: n may be one past the largest exponent.
  float power = from_bits((uint32_t)(whole_of(sum) + 126) << 23);
  return with_sign(2 * fused(power, small, power - 0.5f), x);
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
  result = x < (T)__builtin_inf() ? result : x;
  T edge = x == 0 ? -(T)__builtin_inf() : (T)__builtin_nan("");
  return x > 0 ? result : edge;
}
// log(1 + f) less f, for 1 + f in [sqrt(1/2), sqrt(2)].
template <class T>
STRIDE_DEVICE T log1p_rest(T f) {
  T s = f / (2 + f);
  T z = s * s;
  T half_square = (T)0.5 * f * f;
  return s * fused(z, log_tail(z), half_square) - half_square;
}
STRIDE_DEVICE float log1p_rest(float f) {
  float square = f * f;
  return fused(square * f, log1p_tail(f), -0.5f * square);
}
STRIDE_DEVICE double log_(double x) {
  typedef Exponent<double> E;
  double e, f = split_exponent(x, e) - 1;
  double s = f / (2 + f), z = s * s;
  double half_square = 0.5 * f * f;
  double rest = fused(s, fused(z, log_tail(z), half_square), e * E::kLn2Rest);
  return log_edges(x, fused(e, E::kLn2Part, f - (half_square - rest)));
}
STRIDE_DEVICE float log_(float x) {
  typedef Exponent<float> E;
  float e, f = split_exponent(x, e) - 1;
  float rest = fused(e, E::kLn2Low, log1p_rest(f));
  return log_edges(x, fused(e, E::kLn2, f + rest));
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
  float rest =
      fused(log1p_rest(f), 0x1.bcb7b2p-2f, fused(f, -0x1.5b235ep-27f, e * -0x1.ec10cp-27f));
  return log_edges(x, fused(e, 0x1.344136p-2f, fused(f, 0x1.bcb7b2p-2f, rest)));
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
  double inverse = 1 / d, s = f * inverse;
  double s_low = fused(-s, d_low, fused(-s, d, f)) * inverse;
  double z = s * s;
  double z_low = fused(s, s, -z) + 2 * s * s_low;
  // p = 2/3 + z * rest(z), then y = 2 s + s z p.
  double q = z * log_tail_rest(z);
  double p = 0x1.5555555555555p-1 + q;
  double p_low =
      (0x1.5555555555555p-1 - p) + q + fused(z_low, 0x1.999999999999ap-2, 0x1.5555555555555p-55);
  double w = z * p;
  double w_low = fused(z, p, -w) + fused(z, p_low, z_low * p);
  double v = s * w;
  double v_low = fused(s, w, -v) + fused(s, w_low, s_low * w);
  double y = fused(2.0, s, v);
  double y_low = fused(2.0, s, -y) + v + fused(2.0, s_low, v_low);
  double t = y * 0x1.71547652b82fep+0;
  double t_low = fused(y, 0x1.71547652b82fep+0, -t) +
                 fused(y, 0x1.777d0ffda0d24p-56, y_low * 0x1.71547652b82fep+0);
  // The exponent is zero or the larger part.
  double sum = e + t;
  low = ((e - sum) + t) + t_low;
  return sum;
}
// Zeros, infinities and NaN pass through the logarithm and the product.
STRIDE_DEVICE double pow_(double x, double y) {
  const double inf = __builtin_inf();
  double a = absolute(x);
  double low, high = log2_wide(a, low);
  high = a < inf ? high : a;
  high = a == 0 ? -inf : high;
  // Past this the result is infinity, zero or one whatever y is; staying in range keeps the
  // two-part product whole.
  double yy = limit(y, -0x1p66, 0x1p66);
  double p = high * yy;
  double p_low = fused(high, yy, -p) + low * yy;
  bool none = p < -1080, within = !none & ((p < 1024) | ((p == 1024) & (p_low < 0)));
  double q = within ? p : 0.0;
  double sum = q + kRoundDouble, n = sum - kRoundDouble;
  double f = (q - n) + p_low;
  double f_low = ((q - n) - f) + p_low;
  double r = f * 0x1.62e42fefa39efp-1;
  double r_low = fused(f, 0x1.62e42fefa39efp-1, -r) +
                 fused(f, 0x1.abc9e3b39803fp-56, f_low * 0x1.62e42fefa39efp-1);
  double result = within ? scale_by(exp_small(r, r_low), sum) : p * inf;
  result = none ? 0.0 : result;
  double half = 0.5 * y;
  bool whole = nearest(y) == y, even = nearest(half) == half;
  result = ((bits(x) >> 63) != 0) & whole & !even ? -result : result;
  result = (x < 0) & (a < inf) & !whole ? (double)__builtin_nan("") : result;
  return (x == 1) | (y == 0) ? 1.0 : result;
}
// A product of 128 and the logarithm's error is 0.2 of a float's last place.
STRIDE_DEVICE float pow_(float x, float y) {
  const float inf = __builtin_inff();
  float a = absolute(x), b = absolute(y);
  float e, m = split_exponent(a, e);
  double f = m - 1;
  double log2_of = fused(f, log2_ratio(f), (double)e);
  log2_of = a < inf ? log2_of : a;
  log2_of = a == 0 ? -inf : log2_of;
  double p = log2_of * y;
  p = (a == 1) & (b == inf) ? 0.0 : p;
  double q = limit(p, -200.0, 200.0);
  double sum = q + 0x1.8p52, n = sum - 0x1.8p52;
  float power = exp2_small((float)(q - n));
  float result = scale(p < -151 ? 0.0f : power, (int)(uint32_t)bits(sum));
  float half = 0.5f * y;
  bool whole = nearest(y) == y, even = nearest(half) == half;
  result = (bits(x) >> 31 != 0) & whole & !even ? -result : result;
  result = (x < 0) & (a < inf) & !whole ? __builtin_nanf("") : result;
  return (x == 1) | (y == 0) ? 1.0f : result;
}

// ---- circular functions

// x = (n + f) * pi/2; sin and cos need n modulo 4 (in the low bits of `quadrant`) and f * pi/2 in
// two parts.
struct Angle {
  double high, low;
  uint64_t quadrant;
};
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
// x / pi, and 1/2 with kHalf, less the nearest whole number, whose last bit is the sign bit of
// `sign`: between -1/2 and 1/2, or up to 1/32 beyond for x from 2^49 on. Arguments whose last bit
// is worth 2^k or more are a whole multiple of it, and 2^k / pi may be replaced by its remainder
// modulo 2: exact for every float, with no table to look up. For these k the remainders are small,
// so that a part serves many arguments.
template <bool kHalf>
STRIDE_DEVICE double turns_of(float x, uint32_t& sign) {
  float a = absolute(x), down = 1;
  double high = 0x1.45f306dc9c883p-2, low = -0x1.6b01ec5417056p-56;
  high = a >= 0x1p50f ? -0x1.1b1bbead603d9p-2 : high;
  low = a >= 0x1p50f ? 0x1.5f47d4d377037p-56 : low;
  down = a >= 0x1p50f ? 0x1p-27f : down;
  high = a >= 0x1p77f ? 0x1.4a7f09d5f47d5p-1 : high;
  low = a >= 0x1p77f ? -0x1.6447e493ad4cep-56 : low;
  down = a >= 0x1p77f ? 0x1p-54f : down;
  high = a >= 0x1p102f ? -0x1.505c1596447e5p-3 : high;
  low = a >= 0x1p102f ? 0x1.b14acc9e21c82p-57 : low;
  down = a >= 0x1p102f ? 0x1p-79f : down;
  double y = x * down;
  double p = y * high;
  double error = fused(y, high, -p);
  double shifted = (kHalf ? p + 0.5 : p) + 0x1.8p52;
  double f = p - (shifted - 0x1.8p52);
  f = (kHalf ? f + 0.5 : f) + fused(y, low, error);
  sign = (uint32_t)bits(shifted) << 31;
  return f;
}
STRIDE_DEVICE float radians_of(double turns) { return (float)(turns * 0x1.921fb54442d18p+1); }
// sin(pi * turns), with `sign` for what the whole number changes: beyond pi/4 the cosine of the
// rest to pi/2. One polynomial has the coefficients of either (sine_tail, cosine_tail).
STRIDE_DEVICE float sine_of_turns(double turns, uint32_t sign) {
  float r = radians_of(turns), a = absolute(r);
  bool fold = a > 0x1.921fb6p-1f;
  float rest = (0x1.921fb6p+0f - a) - 0x1.777a5cp-25f;
  float base = fold ? 1.0f : a;
  a = fold ? rest : a;
  float z = a * a;
  float p = fold ? 0x1.9bd67p-16f : 0.0f;
  p = fused(p, z, fold ? -0x1.6c12cep-10f : -0x1.9ac6fcp-13f);
  p = fused(p, z, fold ? 0x1.555554p-5f : 0x1.110c24p-7f);
  p = fused(p, z, fold ? -0.5f : -0x1.555552p-3f);
  sign ^= bits(r) & 0x80000000u;
  return from_bits(bits(fused(base, p * z, base)) ^ sign);
}
STRIDE_DEVICE float sin_(float x) {
  uint32_t sign;
  double turns = turns_of<false>(x, sign);
  float sine = sine_of_turns(turns, sign);
  return x == 0 ? x : sine;
}
STRIDE_DEVICE float cos_(float x) {
  uint32_t sign;
  double turns = turns_of<true>(x, sign);
  return sine_of_turns(turns, sign);
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
// The sine and cosine of pi x. Subtracting the nearest multiple of 2 and reflecting at 1/2 are
// exact, so that the zeros at integers and halves are.
STRIDE_DEVICE double sin_pi(double x) {
  double r = x - 2.0 * __builtin_rint(x * 0.5);
  r = absolute(r) > 0.5 ? __builtin_copysign(1.0, r) - r : r;
  return x == 0 ? x : sin_(r * 3.14159265358979323846);
}
STRIDE_DEVICE double cos_pi(double x) {
  double r = absolute(x - 2.0 * __builtin_rint(x * 0.5));
  return sin_((0.5 - r) * 3.14159265358979323846);
}
// The quotient of both, whose roundings are made up for.
STRIDE_DEVICE double tangent_of(double r, double low, bool odd) {
  double z = r * r, half = 0.5 * z;
  double sine_rest = fused(r * z, sine_tail(z), fused(-half, low, low));
  double s = r + sine_rest, s_low = (r - s) + sine_rest;
  double w = 1 - half;
  double cosine_rest = ((1 - w) - half) + fused(z * z, cosine_tail(z), -r * low);
  double c = w + cosine_rest, c_low = (w - c) + cosine_rest;
  double up = odd ? -c : s, up_low = odd ? -c_low : s_low;
  double down = odd ? s : c, down_low = odd ? s_low : c_low;
  double inverse = 1 / down, q = up * inverse;
  double rest = fused(-q, down_low, fused(-q, down, up) + up_low);
  return fused(rest, inverse, q);
}
STRIDE_DEVICE double tan_(double x) {
  Angle a = reduce_double(x);
  double result = tangent_of(a.high, a.low, (a.quadrant & 1) != 0);
  return absolute(x) < 0x1p-27 ? x : result;
}
STRIDE_DEVICE float tan_(float x) {
  uint32_t sign;
  double f = turns_of<false>(x, sign), a = absolute(f);
  bool fold = a > 0.25;
  float r = radians_of(fold ? 0.5 - a : a);
  float s = sine_of(r), c = cosine_of(r);
  float result = (fold ? c : s) / (fold ? s : c);
  return x == 0 ? x : f < 0 ? -result : result;
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
// The angle in two parts, of which `t` is rounded at most twice.
STRIDE_DEVICE float atan2_(float y, float x) {
  float a = absolute(y), b = absolute(x);
  bool swap = a > b, left = bits(x) >> 31 != 0;
  float top = swap ? b : a, bottom = swap ? a : b;
  float t = top == bottom ? 1.0f : top / bottom;  // both may be infinite
  t = bottom == 0 ? 0.0f : t;
  float z = t * t;
  float rest = t * z * short_arc_tail(z);
  // pi/2 less the angle, and pi less that.
  float base = left ? 0x1.921fb6p+1f : 0.0f, base_low = left ? -0x1.777a5cp-24f : 0.0f;
  base = swap ? 0x1.921fb6p+0f : base;
  base_low = swap ? -0x1.777a5cp-25f : base_low;
  bool minus = swap != left;
  float angle = base + ((minus ? -t : t) + ((minus ? -rest : rest) + base_low));
  angle = (x != x) | (y != y) ? x + y : angle;
  return with_sign(angle, y);
}
STRIDE_DEVICE float atan_(float x) {
  float a = absolute(x);
  bool swap = a > 1;
  float t = swap ? 1 / a : a;
  float z = t * t;
  float rest = t * z * short_arc_tail(z);
  float other = 0x1.921fb6p+0f - (t + (rest + 0x1.777a5cp-25f));
  return with_sign(swap ? other : t + rest, x);
}
// Beyond 1/2 by arccos(a) = 2 arcsin(sqrt((1 - a) / 2)).
STRIDE_DEVICE float asin_(float x) {
  float a = absolute(x);
  bool far = a > 0.5f;
  float z = far ? fused(-0.5f, a, 0.5f) : a * a;
  float s = far ? root(z) : a;
  float angle = fused(s * z, arcsine_tail(z), s);
  float other = 0x1.921fb6p+0f - fused(2.0f, angle, 0x1.777a5cp-25f);
  return with_sign(far ? other : angle, x);
}
STRIDE_DEVICE float acos_(float x) {
  float a = absolute(x);
  bool far = a > 0.5f;
  float z = far ? fused(-0.5f, a, 0.5f) : a * a;
  float s = far ? root(z) : a;
  float rest = s * z * arcsine_tail(z);
  float near_zero = 0x1.921fb6p+0f - (with_sign(s, x) + (with_sign(rest, x) + 0x1.777a5cp-25f));
  float right = 2 * (s + rest);
  float left = 0x1.921fb6p+1f - (fused(2.0f, rest, 0x1.777a5cp-24f) + 2 * s);
  float beyond = x < 0 ? left : right;
  return far ? beyond : near_zero;
}
// Between 1/2 and 2 by the angle to pi/4, whose leg x - 1 is exact; beyond 2 by that to pi/2.
STRIDE_DEVICE double atan_(double x) {
  double a = absolute(x);
  bool fold = a > 0.5, swap = a > 2;
  double up = fold ? a - 1 : a, down = fold ? a + 1 : 1.0;
  up = swap ? -1.0 : up;
  double base = fold ? 0x1.921fb54442d18p-1 : 0.0, base_low = fold ? 0x1.1a62633145c07p-55 : 0.0;
  base = swap ? 0x1.921fb54442d18p+0 : base;
  base_low = swap ? 0x1.1a62633145c07p-54 : base_low;
  double t = up / (swap ? a : down);
  double z = t * t;
  return with_sign(base + (t + fused(t * z, arc_tail(z), base_low)), x);
}
// The root of z in [0, 1], of which `low` is what rounding lost.
STRIDE_DEVICE double root_by_floats(double z, double& low) {
  float start = root((float)z);
  double half = (double)(0.5f / start), s = (double)start;
  s = fused(fused(-s, s, z), half, s);
  low = fused(-s, s, z) * half;
  double sum = s + low;
  low = absolute(z) < 0x1p-100 ? 0.0 : (s - sum) + low;
  return absolute(z) < 0x1p-100 ? 0.0 : sum;
}
STRIDE_DEVICE double asin_(double x) {
  double a = absolute(x);
  bool far = a > 0.5;
  double z = far ? fused(-0.5, a, 0.5) : a * a;
  double low, s = root_by_floats(z, low);
  s = far ? s : a;
  double rest = s * z * arcsine_tail(z);
  double other = 0x1.921fb54442d18p+0 - (2 * s + (2 * (rest + low) - 0x1.1a62633145c07p-54));
  return with_sign(far ? other : a + rest, x);
}
STRIDE_DEVICE double acos_(double x) {
  double a = absolute(x);
  bool far = a > 0.5;
  double z = far ? fused(-0.5, a, 0.5) : a * a;
  double low, s = root_by_floats(z, low);
  s = far ? s : a;
  double rest = s * z * arcsine_tail(z);
  double near_zero =
      0x1.921fb54442d18p+0 - (with_sign(s, x) + (with_sign(rest, x) - 0x1.1a62633145c07p-54));
  double right = 2 * (s + (rest + low));
  double left = 0x1.921fb54442d18p+1 - (2 * s + (2 * (rest + low) - 0x1.1a62633145c07p-53));
  double beyond = x < 0 ? left : right;
  return far ? beyond : near_zero;
}

// ---- hyperbolic functions

// (sinh(x) - x) / x^3 of z = x^2 up to 1, of doubles up to 2.25: Taylor's terms.
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
STRIDE_DEVICE double sinh_(double x) {
  double a = absolute(x), z = a * a;
  double near_zero = fused(a * z, sinh_tail(z), a);
  double half = exp_times_(a, -1.0);
  return with_sign(a < 1.5 ? near_zero : half - 0.25 / half, x);
}
STRIDE_DEVICE float sinh_(float x) {
  float a = absolute(x), z = a * a;
  float near_zero = fused(a * z, sinh_tail(z), a);
  float half = exp_times_(a, -1.0f);
  return with_sign(a < 1 ? near_zero : half - 0.25f / half, x);
}
STRIDE_DEVICE float cosh_(float x) {
  float half = exp_times_(absolute(x), -1.0f);
  float result = half + 0.25f / half;
  return x != x ? x : result;
}
STRIDE_DEVICE double cosh_(double x) {
  double half = exp_times_(absolute(x), -1.0);
  return half + 0.25 / half;
}
STRIDE_DEVICE double tanh_(double x) {
  typedef Exponent<double> E;
  double a = absolute(x);
  a = a > 22 ? 22.0 : a;
  double sum = fused(a, 2 * E::kLog2e, kRoundDouble), n = sum - kRoundDouble;
  double r = fused(-n, E::kLn2Rest, fused(-n, E::kLn2Part, a + a));
  double small = fused(r * r, exp_tail(r), r);
  double power = from_bits((bits(sum) + 1023) << 52);
  // e / (e + 2), and what rounding the sum and the quotient lost.
  double e = fused(power, small, power - 1);
  double d = e + 2, d_low = (2 - d) + e;
  double inverse = 1 / d, q = e * inverse;
  return with_sign(fused(fused(-q, d_low, fused(-q, d, e)), inverse, q), x);
}
STRIDE_DEVICE float tanh_(float x) {
  typedef Exponent<float> E;
  float a = absolute(x);
  a = a > 10 ? 10.0f : a;
  float sum = fused(a, 2 * E::kLog2e, kRound), n = sum - kRound;
  float r = fused(-n, E::kLn2Low, fused(-n, E::kLn2, a + a));
  float small = fused(r * r, exp_tail(r), r);
  float power = from_bits((uint32_t)(whole_of(sum) + 127) << 23);
  // e / (e + 2), and what rounding the sum and the quotient lost.
  float e = fused(power, small, power - 1);
  float d = e + 2, d_low = (2 - d) + e;
  float inverse = 1 / d, q = e * inverse;
  return with_sign(fused(fused(-q, d_low, fused(-q, d, e)), inverse, q), x);
}
// Beyond kHuge both are log(2 a).
template <class T>
STRIDE_DEVICE T asinh_(T x) {
  constexpr T kHuge = 0x1p28;
  T a = absolute(x);
  bool huge = a > kHuge;
  T b = huge ? (T)1 : a;
  T sum = b + b * b / (1 + root(fused(b, b, (T)1)));
  T result = log1p_(huge ? a - 1 : sum) + (huge ? Exponent<T>::kLn2 : (T)0);
  return x == 0 || x != x ? x : with_sign(result, x);
}
template <class T>
STRIDE_DEVICE T acosh_(T x) {
  constexpr T kHuge = 0x1p28;
  bool huge = x > kHuge;
  T less = x - 1, t = huge ? (T)1 : less;
  T sum = t + root(fused(t, t, 2 * t));
  T result = log1p_(huge ? less : sum) + (huge ? Exponent<T>::kLn2 : (T)0);
  return x < 1 ? (T)__builtin_nan("") : result;
}
template <class T>
STRIDE_DEVICE T atanh_(T x) {
  T a = absolute(x);
  T result = (T)0.5 * log1p_(2 * a / (1 - a));
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
  // 1 / cbrt(scaled) from a third of the exponent, to four bits; then by the series of
  // (1 - e)^(-1/3).
  double third = (double)(int64_t)(bits(scaled) >> 20) * (1.0 / 3);
  double r = from_bits(0x553ef0ff289dd796u - ((uint64_t)third << 20));
  for (int i = 0; i < 2; ++i) {
    double e = fused(-(scaled * r), r * r, 1.0);
    double series = fused(e, fused(e, 14 / 81.0, 2 / 9.0), 1 / 3.0);
    r = fused(r * e, series, r);
  }
  double square_of = r * r, y = scaled * square_of;
  double square = y * y, square_low = fused(y, y, -square);
  double error = fused(square, y, -scaled) + square_low * y;
  y = fused(error * (-1 / 3.0), square_of, y);
  y = tiny ? y * 0x1p-18 : huge ? y * 0x1p18 : y;
  return edge ? x : with_sign(y, x);
}
STRIDE_DEVICE float cbrt_(float x) {
  float a = absolute(x);
  bool tiny = a < 0x1p-126f;
  float m = tiny ? a * 0x1p24f : a;
  // 1 / cbrt(m) from a third of the exponent, to four bits; then to sixteen by the series of
  // (1 - e)^(-1/3).
  float third = (float)(int)bits(m) * (1 / 3.0f);
  float r = from_bits(0x54a21d2au - (uint32_t)(int)third);
  float e = fused(-m * r, r * r, 1.0f);
  r = fused(r * e, fused(e, fused(e, 14 / 81.0f, 2 / 9.0f), 1 / 3.0f), r);
  float square = r * r, y = m * square;
  y = fused(fused(y * y, y, -m) * (-1 / 3.0f), square, y);
  y = tiny ? y * 0x1p-8f : y;
  return (a == 0) | !(a < __builtin_inff()) ? x : with_sign(y, x);
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
