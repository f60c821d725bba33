// Norms, inverses of the error function, and other functions of CUDA's math library that no other
// header here has.
#pragma once

STRIDE_DEVICE float nanf(const char*) { return __builtin_nanf(""); }
STRIDE_DEVICE double nan(const char*) { return __builtin_nan(""); }

STRIDE_NAME2(rhypot, 1.0f / hypotf(x, y), 1.0 / hypot(x, y))

// Scaled by the largest, so that no square overflows or vanishes.
namespace __stride {
STRIDE_DEVICE double norm_of(const double* values, int count) {
  double largest = 0, sum = 0;
  for (int i = 0; i < count; ++i) {
    double x = __builtin_fabs(values[i]);
    if (x == __builtin_inf()) return x;
    if (x > largest || x != x) largest = x;
  }
  if (largest == 0 || largest != largest) return largest;
  for (int i = 0; i < count; ++i) sum += values[i] / largest * (values[i] / largest);
  return largest * __builtin_sqrt(sum);
}
}  // namespace __stride
STRIDE_DEVICE double norm3d(double a, double b, double c) {
  double values[] = {a, b, c};
  return __stride::norm_of(values, 3);
}
STRIDE_DEVICE double norm4d(double a, double b, double c, double d) {
  double values[] = {a, b, c, d};
  return __stride::norm_of(values, 4);
}
// A square of a float is a double without loss.
STRIDE_DEVICE float norm3df(float a, float b, float c) { return (float)norm3d(a, b, c); }
STRIDE_DEVICE float norm4df(float a, float b, float c, float d) {
  return (float)norm4d(a, b, c, d);
}
STRIDE_DEVICE double rnorm3d(double a, double b, double c) { return 1.0 / norm3d(a, b, c); }
STRIDE_DEVICE float rnorm3df(float a, float b, float c) { return (float)rnorm3d(a, b, c); }
STRIDE_DEVICE double rnorm4d(double a, double b, double c, double d) {
  return 1.0 / norm4d(a, b, c, d);
}
STRIDE_DEVICE float rnorm4df(float a, float b, float c, float d) {
  return (float)rnorm4d(a, b, c, d);
}
STRIDE_DEVICE double norm(int count, const double* values) {
  return __stride::norm_of(values, count);
}
STRIDE_DEVICE float normf(int count, const float* values) {
  double sum = 0;
  for (int i = 0; i < count; ++i) {
    if (__builtin_isinf(values[i])) return __builtin_inff();
    sum += (double)values[i] * values[i];
  }
  return (float)__builtin_sqrt(sum);
}
STRIDE_DEVICE double rnorm(int count, const double* values) { return 1.0 / norm(count, values); }
STRIDE_DEVICE float rnormf(int count, const float* values) { return 1.0f / normf(count, values); }

namespace __stride {
// The quantile of the normal distribution for probability p or, with `upper`, 1 - p: a start by
// Abramowitz and Stegun 26.2.23 (an error below 4.5e-4), then steps of Halley's method.
STRIDE_DEVICE double normal_quantile(double p, bool upper) {
  if (!(p >= 0 && p <= 1)) return __builtin_nan("");
  if (p == 0 || p == 1) return (p == 0) != upper ? -__builtin_inf() : __builtin_inf();
  bool low = p < 0.5;
  double tail = low ? p : 1 - p;
  double t = __builtin_sqrt(-2 * log(tail));
  double x = t - (2.515517 + t * (0.802853 + t * 0.010328)) /
                     (1 + t * (1.432788 + t * (0.189269 + t * 0.001308)));
  for (int i = 0; i < 3; ++i) {
    double error = 0.5 * erfc(x * M_SQRT1_2) - tail;
    double density = 0.39894228040143267794 * exp(-0.5 * x * x);
    if (density == 0) break;
    double u = error / density;
    x += u / (1 + 0.5 * x * u);
  }
  return low != upper ? -x : x;
}
STRIDE_DEVICE double erfinv_(double x) {
  if (!(x >= -1 && x <= 1)) return __builtin_nan("");
  if (__builtin_fabs(x) == 1) return x * __builtin_inf();
  double a = __builtin_fabs(x);
  if (a < 1e-8) return x * 0.88622692545275801365;
  double y = a < 0.5 ? a * 0.88622692545275801365 * (1 + 0.26179938779914943 * a * a)
                     : normal_quantile((1 - a) * 0.5, true) * M_SQRT1_2;
  for (int i = 0; i < 3; ++i) {
    double error = a < 0.5 ? erf(y) - a : (1 - a) - erfc(y);
    double u = error / (1.12837916709551257390 * exp(-y * y));
    y -= u / (1 + y * u);
  }
  return __builtin_copysign(y, x);
}
STRIDE_DEVICE double erfcinv_(double x) {
  if (!(x >= 0 && x <= 2)) return __builtin_nan("");
  return normal_quantile(x * 0.5, true) * M_SQRT1_2;
}
// exp(x * x) * erfc(x); for large x by the continued fraction.
STRIDE_DEVICE double erfcx_(double x) {
  if (x < 10) return exp(x * x) * erfc(x);
  double fraction = x;
  for (int k = 30; k > 0; --k) fraction = x + 0.5 * k / fraction;
  return 0.56418958354775628695 / fraction;
}
}  // namespace __stride
STRIDE_WIDE(erfinv)
STRIDE_WIDE(erfcinv)
STRIDE_WIDE(erfcx)
STRIDE_NAME1(normcdfinv, (float)__stride::normal_quantile((double)x, false),
             __stride::normal_quantile(x, false))

STRIDE_DEVICE void sincospi(double x, double* s, double* c) {
  *s = sinpi(x);
  *c = cospi(x);
}
STRIDE_DEVICE void sincospif(float x, float* s, float* c) {
  *s = sinpif(x);
  *c = cospif(x);
}
STRIDE_EXTERN __attribute__((const)) double jn(int, double);
STRIDE_EXTERN __attribute__((const)) float jnf(int, float);
STRIDE_EXTERN __attribute__((const)) double yn(int, double);
STRIDE_EXTERN __attribute__((const)) float ynf(int, float);
STRIDE_DEVICE long long llrintf(float x) { return (long long)__builtin_rintf(x); }
STRIDE_DEVICE long long llroundf(float x) { return (long long)roundf(x); }
STRIDE_DEVICE double scalbln(double x, long n) {
  return ldexp(x, n > 10000 ? 10000 : n < -10000 ? -10000 : (int)n);
}
STRIDE_DEVICE float scalblnf(float x, long n) {
  return ldexpf(x, n > 10000 ? 10000 : n < -10000 ? -10000 : (int)n);
}
