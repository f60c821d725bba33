// Exponentials, logarithms and powers, as in stride_math.h.
#pragma once

#include "stride_math_tables.h"

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

}  // namespace __stride
