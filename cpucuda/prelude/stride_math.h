// Elementary functions without branches, so that loops over them become vector code, and with every
// fused operation written out, so that an element's result does not depend on its place in a
// vector. Denormals, infinities and NaNs as in IEEE 754.
#pragma once

#include "stride_math_circular.h"
#include "stride_math_exp.h"

// Splitting a product into its rounded value and its error must not itself be fused.
#pragma clang fp contract(off)

namespace __stride {

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
