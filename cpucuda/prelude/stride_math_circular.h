// Circular functions and their inverses, as in stride_math.h.
#pragma once

#include "stride_math_exp.h"
#include "stride_two_over_pi.h"

// Splitting a product into its rounded value and its error must not itself be fused.
#pragma clang fp contract(off)

namespace __stride {

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

}  // namespace __stride
