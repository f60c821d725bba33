// 16-bit floating point: __half (the processor converts) and __nv_bfloat16 (bits moved by hand).
// Arithmetic is done in float and rounded once.
#pragma once

#include "stride_names.h"

struct __half {
  _Float16 __value;
  __half() = default;
  STRIDE_METHOD __half(float x) : __value((_Float16)x) {}
  STRIDE_METHOD __half(double x) : __value((_Float16)x) {}
  STRIDE_METHOD __half(int x) : __value((_Float16)(float)x) {}
  STRIDE_METHOD __half(unsigned x) : __value((_Float16)(float)x) {}
  STRIDE_METHOD __half(short x) : __value((_Float16)(float)x) {}
  STRIDE_METHOD __half(unsigned short x) : __value((_Float16)(float)x) {}
  STRIDE_METHOD __half(long x) : __value((_Float16)(float)x) {}
  STRIDE_METHOD __half(unsigned long x) : __value((_Float16)(float)x) {}
  STRIDE_METHOD __half(long long x) : __value((_Float16)(float)x) {}
  STRIDE_METHOD __half(unsigned long long x) : __value((_Float16)(float)x) {}
  STRIDE_METHOD operator float() const { return (float)__value; }
};
struct __nv_bfloat16 {
  unsigned short __bits;
  __nv_bfloat16() = default;
  STRIDE_METHOD __nv_bfloat16(float x) {
    unsigned raw = __builtin_bit_cast(unsigned, x);
    unsigned rounded = raw + 0x7fffu + ((raw >> 16) & 1u);
    __bits = (unsigned short)((x != x ? (raw | 0x400000u) : rounded) >> 16);
  }
  STRIDE_METHOD __nv_bfloat16(double x) : __nv_bfloat16((float)x) {}
  STRIDE_METHOD __nv_bfloat16(int x) : __nv_bfloat16((float)x) {}
  STRIDE_METHOD __nv_bfloat16(unsigned x) : __nv_bfloat16((float)x) {}
  STRIDE_METHOD __nv_bfloat16(short x) : __nv_bfloat16((float)x) {}
  STRIDE_METHOD __nv_bfloat16(unsigned short x) : __nv_bfloat16((float)x) {}
  STRIDE_METHOD __nv_bfloat16(long x) : __nv_bfloat16((float)x) {}
  STRIDE_METHOD __nv_bfloat16(unsigned long x) : __nv_bfloat16((float)x) {}
  STRIDE_METHOD __nv_bfloat16(long long x) : __nv_bfloat16((float)x) {}
  STRIDE_METHOD __nv_bfloat16(unsigned long long x) : __nv_bfloat16((float)x) {}
  STRIDE_METHOD operator float() const { return __builtin_bit_cast(float, (unsigned)__bits << 16); }
};
typedef __half half;
typedef __nv_bfloat16 nv_bfloat16;
struct __align__(4) __half2 {
  __half x, y;
  __half2() = default;
  STRIDE_METHOD __half2(__half x, __half y) : x(x), y(y) {}
};
struct __align__(4) __nv_bfloat162 {
  __nv_bfloat16 x, y;
  __nv_bfloat162() = default;
  STRIDE_METHOD __nv_bfloat162(__nv_bfloat16 x, __nv_bfloat16 y) : x(x), y(y) {}
};
typedef __half2 half2;

#define STRIDE_HALF_OPERATORS(H)                                                      \
  STRIDE_DEVICE H operator+(H a, H b) { return H((float)a + (float)b); }              \
  STRIDE_DEVICE H operator-(H a, H b) { return H((float)a - (float)b); }              \
  STRIDE_DEVICE H operator*(H a, H b) { return H((float)a * (float)b); }              \
  STRIDE_DEVICE H operator/(H a, H b) { return H((float)a / (float)b); }              \
  STRIDE_DEVICE H operator-(H a) { return H(-(float)a); }                             \
  STRIDE_DEVICE H& operator+=(H& a, H b) { return a = a + b; }                        \
  STRIDE_DEVICE H& operator-=(H& a, H b) { return a = a - b; }                        \
  STRIDE_DEVICE H& operator*=(H& a, H b) { return a = a * b; }                        \
  STRIDE_DEVICE H& operator/=(H& a, H b) { return a = a / b; }                        \
  STRIDE_DEVICE bool operator==(H a, H b) { return (float)a == (float)b; }            \
  STRIDE_DEVICE bool operator!=(H a, H b) { return (float)a != (float)b; }            \
  STRIDE_DEVICE bool operator<(H a, H b) { return (float)a < (float)b; }              \
  STRIDE_DEVICE bool operator>(H a, H b) { return (float)a > (float)b; }              \
  STRIDE_DEVICE bool operator<=(H a, H b) { return (float)a <= (float)b; }            \
  STRIDE_DEVICE bool operator>=(H a, H b) { return (float)a >= (float)b; }            \
  STRIDE_DEVICE H __hadd(H a, H b) { return a + b; }                                  \
  STRIDE_DEVICE H __hsub(H a, H b) { return a - b; }                                  \
  STRIDE_DEVICE H __hmul(H a, H b) { return a * b; }                                  \
  STRIDE_DEVICE H __hdiv(H a, H b) { return a / b; }                                  \
  STRIDE_DEVICE H __hneg(H a) { return -a; }                                          \
  STRIDE_DEVICE H __habs(H a) { return H(__builtin_fabsf((float)a)); }                \
  STRIDE_DEVICE H __hfma(H a, H b, H c) {                                             \
    return H(__builtin_fmaf((float)a, (float)b, (float)c));                           \
  }                                                                                   \
  STRIDE_DEVICE H __hmax(H a, H b) { return H(__builtin_fmaxf((float)a, (float)b)); } \
  STRIDE_DEVICE H __hmin(H a, H b) { return H(__builtin_fminf((float)a, (float)b)); } \
  STRIDE_DEVICE bool __heq(H a, H b) { return a == b; }                               \
  STRIDE_DEVICE bool __hne(H a, H b) { return a != b; }                               \
  STRIDE_DEVICE bool __hlt(H a, H b) { return a < b; }                                \
  STRIDE_DEVICE bool __hle(H a, H b) { return a <= b; }                               \
  STRIDE_DEVICE bool __hgt(H a, H b) { return a > b; }                                \
  STRIDE_DEVICE bool __hge(H a, H b) { return a >= b; }                               \
  STRIDE_DEVICE bool __hisnan(H a) { return isnan((float)a); }                        \
  STRIDE_DEVICE H hexp(H a) { return H(expf((float)a)); }                             \
  STRIDE_DEVICE H hlog(H a) { return H(logf((float)a)); }                             \
  STRIDE_DEVICE H hsqrt(H a) { return H(sqrtf((float)a)); }                           \
  STRIDE_DEVICE H hsin(H a) { return H(sinf((float)a)); }                             \
  STRIDE_DEVICE H hcos(H a) { return H(cosf((float)a)); }
STRIDE_HALF_OPERATORS(__half)
STRIDE_HALF_OPERATORS(__nv_bfloat16)

STRIDE_DEVICE __half __float2half(float x) { return __half(x); }
STRIDE_DEVICE __half __float2half_rn(float x) { return __half(x); }
STRIDE_DEVICE __half __double2half(double x) { return __half(x); }
STRIDE_DEVICE float __half2float(__half x) { return (float)x; }
STRIDE_DEVICE unsigned short __half_as_ushort(__half x) {
  return __builtin_bit_cast(unsigned short, x);
}
STRIDE_DEVICE __half __ushort_as_half(unsigned short x) { return __builtin_bit_cast(__half, x); }
STRIDE_DEVICE __half2 __halves2half2(__half a, __half b) { return __half2{a, b}; }
STRIDE_DEVICE __half2 __float2half2_rn(float x) { return __half2{__half(x), __half(x)}; }
STRIDE_DEVICE __half2 __floats2half2_rn(float a, float b) { return __half2{__half(a), __half(b)}; }
STRIDE_DEVICE __half __low2half(__half2 v) { return v.x; }
STRIDE_DEVICE __half __high2half(__half2 v) { return v.y; }
STRIDE_DEVICE float __low2float(__half2 v) { return (float)v.x; }
STRIDE_DEVICE float __high2float(__half2 v) { return (float)v.y; }
STRIDE_DEVICE __half2 __hadd2(__half2 a, __half2 b) { return __half2{a.x + b.x, a.y + b.y}; }
STRIDE_DEVICE __half2 __hmul2(__half2 a, __half2 b) { return __half2{a.x * b.x, a.y * b.y}; }
STRIDE_DEVICE __half2 __hfma2(__half2 a, __half2 b, __half2 c) {
  return __half2{__hfma(a.x, b.x, c.x), __hfma(a.y, b.y, c.y)};
}
STRIDE_DEVICE __nv_bfloat16 __float2bfloat16(float x) { return __nv_bfloat16(x); }
STRIDE_DEVICE __nv_bfloat16 __float2bfloat16_rn(float x) { return __nv_bfloat16(x); }
STRIDE_DEVICE float __bfloat162float(__nv_bfloat16 x) { return (float)x; }
