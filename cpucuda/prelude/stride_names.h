// The math functions under the names C, C++ and CUDA give them.
#pragma once

#include "stride_math.h"

// Rare functions come from the loading process's libm, one call for each element.
#define STRIDE_LIBM(name)                                    \
  STRIDE_EXTERN __attribute__((const)) double name(double);  \
  STRIDE_EXTERN __attribute__((const)) float name##f(float); \
  STRIDE_DEVICE float name(float x) { return name##f(x); }
#define STRIDE_LIBM2(name)                                          \
  STRIDE_EXTERN __attribute__((const)) double name(double, double); \
  STRIDE_EXTERN __attribute__((const)) float name##f(float, float); \
  STRIDE_DEVICE float name(float x, float y) { return name##f(x, y); }
STRIDE_LIBM(tgamma)
STRIDE_LIBM(lgamma)
STRIDE_LIBM(erf)
STRIDE_LIBM(erfc)
STRIDE_LIBM(j0)
STRIDE_LIBM(j1)
STRIDE_LIBM(y0)
STRIDE_LIBM(y1)
STRIDE_LIBM(logb)
STRIDE_LIBM2(fmod)
STRIDE_LIBM2(remainder)
STRIDE_LIBM2(nextafter)
STRIDE_EXTERN double frexp(double, int*);
STRIDE_EXTERN float frexpf(float, int*);
STRIDE_EXTERN __attribute__((const)) double ldexp(double, int);
STRIDE_EXTERN __attribute__((const)) float ldexpf(float, int);
STRIDE_EXTERN double modf(double, double*);
STRIDE_EXTERN float modff(float, float*);
STRIDE_EXTERN double remquo(double, double, int*);
STRIDE_EXTERN float remquof(float, float, int*);
STRIDE_EXTERN __attribute__((const)) int ilogb(double);
STRIDE_EXTERN __attribute__((const)) int ilogbf(float);
STRIDE_DEVICE double scalbn(double x, int n) { return ldexp(x, n); }
STRIDE_DEVICE float scalbnf(float x, int n) { return ldexpf(x, n); }

#define STRIDE_NAME1(name, single, both)                              \
  STRIDE_DEVICE float name##f(float x) { return single; }             \
  STRIDE_DEVICE float name(float x) { return single; }                \
  STRIDE_DEVICE double name(double x) { return both; }                \
  template <class T>                                                  \
  STRIDE_DEVICE typename __stride::IfInteger<T>::type name(T value) { \
    return name((double)value);                                       \
  }
#define STRIDE_OWN(name) STRIDE_NAME1(name, __stride::name##_(x), __stride::name##_(x))
// Singles that go through the double version.
#define STRIDE_WIDE(name) \
  STRIDE_NAME1(name, (float)__stride::name##_((double)x), __stride::name##_(x))
#define STRIDE_BUILTIN(name) STRIDE_NAME1(name, __builtin_##name##f(x), __builtin_##name(x))

namespace __stride {
template <class T, bool = __is_integral(T)>
struct IfInteger {};
template <class T>
struct IfInteger<T, true> {
  typedef double type;
};
}  // namespace __stride

STRIDE_OWN(sin)
STRIDE_OWN(cos)
STRIDE_OWN(tan)
STRIDE_OWN(exp)
STRIDE_OWN(exp2)
STRIDE_OWN(exp10)
STRIDE_OWN(expm1)
STRIDE_OWN(log)
STRIDE_OWN(log2)
STRIDE_OWN(log10)
STRIDE_OWN(log1p)
STRIDE_OWN(sinh)
STRIDE_OWN(cosh)
STRIDE_OWN(tanh)
STRIDE_OWN(asin)
STRIDE_OWN(acos)
STRIDE_OWN(atan)
STRIDE_OWN(asinh)
STRIDE_OWN(acosh)
STRIDE_OWN(atanh)
STRIDE_OWN(cbrt)
STRIDE_BUILTIN(sqrt)
STRIDE_BUILTIN(fabs)
STRIDE_BUILTIN(floor)
STRIDE_BUILTIN(ceil)
STRIDE_BUILTIN(trunc)
STRIDE_BUILTIN(rint)
STRIDE_BUILTIN(nearbyint)
STRIDE_NAME1(rsqrt, 1.0f / __builtin_sqrtf(x), 1.0 / __builtin_sqrt(x))
STRIDE_NAME1(rcbrt, (float)(1.0 / __stride::cbrt_((double)x)), 1.0 / __stride::cbrt_(x))
STRIDE_NAME1(
    round,
    __builtin_copysignf(__builtin_truncf(__builtin_fabsf(x) +
                                         (__builtin_fabsf(x) < 0x1p23f ? 0x1.fffffep-2f : 0.0f)),
                        x),
    __builtin_copysign(__builtin_trunc(__builtin_fabs(x) +
                                       (__builtin_fabs(x) < 0x1p52 ? 0x1.fffffffffffffp-2 : 0.0)),
                       x))
STRIDE_NAME1(sinpi, (float)__stride::sin_pi(x), __stride::sin_pi(x))
STRIDE_NAME1(cospi, (float)__stride::cos_pi(x), __stride::cos_pi(x))
STRIDE_NAME1(normcdf, 0.5f * erfcf(x * -0.707106781f), 0.5 * erfc(x * -M_SQRT1_2))

#define STRIDE_NAME2(name, single, both)                                      \
  STRIDE_DEVICE float name##f(float x, float y) { return single; }            \
  STRIDE_DEVICE float name(float x, float y) { return single; }               \
  STRIDE_DEVICE double name(double x, double y) { return both; }              \
  STRIDE_DEVICE double name(double x, float y) { return name(x, (double)y); } \
  STRIDE_DEVICE double name(float x, double y) { return name((double)x, y); } \
  STRIDE_DEVICE double name(double x, int y) { return name(x, (double)y); }   \
  STRIDE_DEVICE double name(int x, double y) { return name((double)x, y); }
STRIDE_NAME2(pow, __stride::pow_(x, y), __stride::pow_(x, y))
STRIDE_DEVICE float pow(float x, int y) { return __stride::pow_(x, (float)y); }
STRIDE_DEVICE double pow(int x, int y) { return __stride::pow_((double)x, (double)y); }
STRIDE_NAME2(atan2, __stride::atan2_(x, y), __stride::atan2_(x, y))
STRIDE_NAME2(hypot,
             __builtin_isinf(x) || __builtin_isinf(y)
                 ? __builtin_inff()
                 : (float)__builtin_sqrt((double)x * x + (double)y * y),
             __stride::hypot_(x, y))
STRIDE_NAME2(fmin, __builtin_fminf(x, y), __builtin_fmin(x, y))
STRIDE_NAME2(fmax, __builtin_fmaxf(x, y), __builtin_fmax(x, y))
STRIDE_NAME2(fdim, x > y ? x - y : (x != x || y != y ? x + y : 0.0f),
             x > y ? x - y : (x != x || y != y ? x + y : 0.0))
STRIDE_NAME2(copysign, __builtin_copysignf(x, y), __builtin_copysign(x, y))

STRIDE_DEVICE float fmaf(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
STRIDE_DEVICE float fma(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
STRIDE_DEVICE double fma(double a, double b, double c) { return __builtin_fma(a, b, c); }
STRIDE_DEVICE float fdividef(float a, float b) { return a / b; }
STRIDE_DEVICE void sincosf(float x, float* s, float* c) {
  *s = __stride::sin_(x);
  *c = __stride::cos_(x);
}
STRIDE_DEVICE void sincos(float x, float* s, float* c) {
  *s = __stride::sin_(x);
  *c = __stride::cos_(x);
}
STRIDE_DEVICE void sincos(double x, double* s, double* c) {
  *s = __stride::sin_(x);
  *c = __stride::cos_(x);
}
STRIDE_DEVICE int lrintf(float x) { return (int)__builtin_rintf(x); }
STRIDE_DEVICE long lrint(double x) { return (long)__builtin_rint(x); }
STRIDE_DEVICE long lroundf(float x) { return (long)roundf(x); }
STRIDE_DEVICE long lround(double x) { return (long)round(x); }
STRIDE_DEVICE long long llrint(double x) { return (long long)__builtin_rint(x); }
STRIDE_DEVICE long long llround(double x) { return (long long)round(x); }

STRIDE_DEVICE bool isnan(float x) { return x != x; }
STRIDE_DEVICE bool isnan(double x) { return x != x; }
STRIDE_DEVICE bool isinf(float x) { return __builtin_fabsf(x) == __builtin_inff(); }
STRIDE_DEVICE bool isinf(double x) { return __builtin_fabs(x) == __builtin_inf(); }
STRIDE_DEVICE bool isfinite(float x) { return __builtin_fabsf(x) < __builtin_inff(); }
STRIDE_DEVICE bool isfinite(double x) { return __builtin_fabs(x) < __builtin_inf(); }
STRIDE_DEVICE bool signbit(float x) { return (__stride::bits(x) >> 31) != 0; }
STRIDE_DEVICE bool signbit(double x) { return (__stride::bits(x) >> 63) != 0; }

STRIDE_DEVICE float frexp(float x, int* exponent) { return frexpf(x, exponent); }
STRIDE_DEVICE float ldexp(float x, int exponent) { return ldexpf(x, exponent); }
STRIDE_DEVICE float modf(float x, float* whole) { return modff(x, whole); }
STRIDE_DEVICE float remquo(float x, float y, int* quotient) { return remquof(x, y, quotient); }
STRIDE_DEVICE float scalbn(float x, int n) { return ldexpf(x, n); }
STRIDE_DEVICE long lround(float x) { return (long)roundf(x); }
STRIDE_DEVICE long lrint(float x) { return (long)__builtin_rintf(x); }
STRIDE_DEVICE long long llround(float x) { return (long long)roundf(x); }
STRIDE_DEVICE long long llrint(float x) { return (long long)__builtin_rintf(x); }

STRIDE_DEVICE int abs(int x) { return x < 0 ? -x : x; }
STRIDE_DEVICE long abs(long x) { return x < 0 ? -x : x; }
STRIDE_DEVICE long long abs(long long x) { return x < 0 ? -x : x; }
STRIDE_DEVICE float abs(float x) { return __builtin_fabsf(x); }
STRIDE_DEVICE double abs(double x) { return __builtin_fabs(x); }
STRIDE_DEVICE long labs(long x) { return x < 0 ? -x : x; }
STRIDE_DEVICE long long llabs(long long x) { return x < 0 ? -x : x; }

#define STRIDE_MINMAX(T)                                  \
  STRIDE_DEVICE T min(T a, T b) { return b < a ? b : a; } \
  STRIDE_DEVICE T max(T a, T b) { return a < b ? b : a; }
STRIDE_MINMAX(int)
STRIDE_MINMAX(unsigned)
STRIDE_MINMAX(long)
STRIDE_MINMAX(unsigned long)
STRIDE_MINMAX(long long)
STRIDE_MINMAX(unsigned long long)
STRIDE_DEVICE unsigned min(unsigned a, int b) { return min(a, (unsigned)b); }
STRIDE_DEVICE unsigned min(int a, unsigned b) { return min((unsigned)a, b); }
STRIDE_DEVICE unsigned max(unsigned a, int b) { return max(a, (unsigned)b); }
STRIDE_DEVICE unsigned max(int a, unsigned b) { return max((unsigned)a, b); }
STRIDE_DEVICE float min(float a, float b) { return __builtin_fminf(a, b); }
STRIDE_DEVICE float max(float a, float b) { return __builtin_fmaxf(a, b); }
STRIDE_DEVICE double min(double a, double b) { return __builtin_fmin(a, b); }
STRIDE_DEVICE double max(double a, double b) { return __builtin_fmax(a, b); }
STRIDE_DEVICE double min(float a, double b) { return __builtin_fmin(a, b); }
STRIDE_DEVICE double min(double a, float b) { return __builtin_fmin(a, b); }
STRIDE_DEVICE double max(float a, double b) { return __builtin_fmax(a, b); }
STRIDE_DEVICE double max(double a, float b) { return __builtin_fmax(a, b); }
STRIDE_DEVICE int umin(unsigned a, unsigned b) { return b < a ? b : a; }
STRIDE_DEVICE int umax(unsigned a, unsigned b) { return a < b ? b : a; }

STRIDE_DEVICE void* memcpy(void* to, const void* from, size_t n) {
  return __builtin_memcpy(to, from, n);
}
STRIDE_DEVICE void* memmove(void* to, const void* from, size_t n) {
  return __builtin_memmove(to, from, n);
}
STRIDE_DEVICE void* memset(void* to, int value, size_t n) { return __builtin_memset(to, value, n); }

namespace std {
using ::abs;
using ::acos;
using ::acosh;
using ::asin;
using ::asinh;
using ::atan;
using ::atan2;
using ::atanh;
using ::cbrt;
using ::ceil;
using ::copysign;
using ::cos;
using ::cosh;
using ::erf;
using ::erfc;
using ::exp;
using ::exp2;
using ::expm1;
using ::fabs;
using ::fdim;
using ::floor;
using ::fma;
using ::fmax;
using ::fmin;
using ::fmod;
using ::frexp;
using ::hypot;
using ::ilogb;
using ::int16_t;
using ::int32_t;
using ::int64_t;
using ::int8_t;
using ::intptr_t;
using ::isfinite;
using ::isinf;
using ::isnan;
using ::labs;
using ::ldexp;
using ::lgamma;
using ::llabs;
using ::llrint;
using ::llround;
using ::log;
using ::log10;
using ::log1p;
using ::log2;
using ::logb;
using ::lrint;
using ::lround;
using ::memcpy;
using ::memmove;
using ::memset;
using ::modf;
using ::nearbyint;
using ::nextafter;
using ::pow;
using ::ptrdiff_t;
using ::remainder;
using ::remquo;
using ::rint;
using ::round;
using ::scalbn;
using ::signbit;
using ::sin;
using ::sinh;
using ::size_t;
using ::sqrt;
using ::tan;
using ::tanh;
using ::tgamma;
using ::trunc;
using ::uint16_t;
using ::uint32_t;
using ::uint64_t;
using ::uint8_t;
using ::uintptr_t;
template <class T>
STRIDE_EITHER constexpr const T& min(const T& a, const T& b) {
  return b < a ? b : a;
}
template <class T>
STRIDE_EITHER constexpr const T& max(const T& a, const T& b) {
  return a < b ? b : a;
}
}  // namespace std
