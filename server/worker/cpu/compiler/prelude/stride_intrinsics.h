// CUDA's double-underscore functions on numbers and bits.
#pragma once

STRIDE_DEVICE float __sinf(float x) { return sinf(x); }
STRIDE_DEVICE float __cosf(float x) { return cosf(x); }
STRIDE_DEVICE float __tanf(float x) { return tanf(x); }
STRIDE_DEVICE float __expf(float x) { return expf(x); }
STRIDE_DEVICE float __exp10f(float x) { return exp10f(x); }
STRIDE_DEVICE float __logf(float x) { return logf(x); }
STRIDE_DEVICE float __log2f(float x) { return log2f(x); }
STRIDE_DEVICE float __log10f(float x) { return log10f(x); }
STRIDE_DEVICE float __powf(float x, float y) { return powf(x, y); }
STRIDE_DEVICE void __sincosf(float x, float* s, float* c) { sincosf(x, s, c); }
STRIDE_DEVICE float __fdividef(float a, float b) { return a / b; }
STRIDE_DEVICE float __saturatef(float x) { return x > 0 ? (x < 1 ? x : 1) : 0; }
STRIDE_DEVICE float __frcp_rn(float x) { return 1 / x; }
STRIDE_DEVICE float __fsqrt_rn(float x) { return sqrtf(x); }
STRIDE_DEVICE float __frsqrt_rn(float x) { return rsqrtf(x); }
STRIDE_DEVICE double __dsqrt_rn(double x) { return sqrt(x); }
#pragma clang fp contract(off)
STRIDE_DEVICE float __fadd_rn(float a, float b) { return a + b; }
STRIDE_DEVICE float __fsub_rn(float a, float b) { return a - b; }
STRIDE_DEVICE float __fmul_rn(float a, float b) { return a * b; }
STRIDE_DEVICE float __fdiv_rn(float a, float b) { return a / b; }
STRIDE_DEVICE double __dadd_rn(double a, double b) { return a + b; }
STRIDE_DEVICE double __dsub_rn(double a, double b) { return a - b; }
STRIDE_DEVICE double __dmul_rn(double a, double b) { return a * b; }
STRIDE_DEVICE double __ddiv_rn(double a, double b) { return a / b; }
#ifdef __STRIDE_CONTRACT__
#pragma clang fp contract(fast)
#endif
STRIDE_DEVICE float __fmaf_rn(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
STRIDE_DEVICE double __fma_rn(double a, double b, double c) { return __builtin_fma(a, b, c); }

STRIDE_DEVICE int __float_as_int(float x) { return __builtin_bit_cast(int, x); }
STRIDE_DEVICE unsigned __float_as_uint(float x) { return __builtin_bit_cast(unsigned, x); }
STRIDE_DEVICE float __int_as_float(int x) { return __builtin_bit_cast(float, x); }
STRIDE_DEVICE float __uint_as_float(unsigned x) { return __builtin_bit_cast(float, x); }
STRIDE_DEVICE long long __double_as_longlong(double x) { return __builtin_bit_cast(long long, x); }
STRIDE_DEVICE double __longlong_as_double(long long x) { return __builtin_bit_cast(double, x); }
STRIDE_DEVICE int __double2loint(double x) { return (int)__builtin_bit_cast(long long, x); }
STRIDE_DEVICE int __double2hiint(double x) { return (int)(__builtin_bit_cast(long long, x) >> 32); }
STRIDE_DEVICE double __hiloint2double(int high, int low) {
  return __builtin_bit_cast(double, (unsigned long long)(unsigned)high << 32 | (unsigned)low);
}
STRIDE_DEVICE int __float2int_rn(float x) { return (int)rintf(x); }
STRIDE_DEVICE int __float2int_rz(float x) { return (int)x; }
STRIDE_DEVICE int __float2int_rd(float x) { return (int)floorf(x); }
STRIDE_DEVICE int __float2int_ru(float x) { return (int)ceilf(x); }
STRIDE_DEVICE unsigned __float2uint_rn(float x) { return (unsigned)rintf(x); }
STRIDE_DEVICE unsigned __float2uint_rz(float x) { return (unsigned)x; }
STRIDE_DEVICE int __double2int_rn(double x) { return (int)rint(x); }
STRIDE_DEVICE int __double2int_rz(double x) { return (int)x; }
STRIDE_DEVICE float __int2float_rn(int x) { return (float)x; }
STRIDE_DEVICE float __uint2float_rn(unsigned x) { return (float)x; }
STRIDE_DEVICE float __double2float_rn(double x) { return (float)x; }

STRIDE_DEVICE int __popc(unsigned x) { return __builtin_popcount(x); }
STRIDE_DEVICE int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
STRIDE_DEVICE int __clz(int x) { return x == 0 ? 32 : __builtin_clz((unsigned)x); }
STRIDE_DEVICE int __clzll(long long x) {
  return x == 0 ? 64 : __builtin_clzll((unsigned long long)x);
}
STRIDE_DEVICE int __ffs(int x) { return __builtin_ffs(x); }
STRIDE_DEVICE int __ffsll(long long x) { return __builtin_ffsll(x); }
STRIDE_DEVICE unsigned __brev(unsigned x) { return __builtin_bitreverse32(x); }
STRIDE_DEVICE unsigned long long __brevll(unsigned long long x) {
  return __builtin_bitreverse64(x);
}
STRIDE_DEVICE int __mul24(int a, int b) { return ((a << 8) >> 8) * ((b << 8) >> 8); }
STRIDE_DEVICE unsigned __umul24(unsigned a, unsigned b) {
  return (a & 0xffffffu) * (b & 0xffffffu);
}
STRIDE_DEVICE int __mulhi(int a, int b) { return (int)((long long)a * b >> 32); }
STRIDE_DEVICE unsigned __umulhi(unsigned a, unsigned b) {
  return (unsigned)((unsigned long long)a * b >> 32);
}
STRIDE_DEVICE unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
  return (unsigned long long)((unsigned __int128)a * b >> 64);
}
STRIDE_DEVICE long long __mul64hi(long long a, long long b) {
  return (long long)((__int128)a * b >> 64);
}
STRIDE_DEVICE unsigned __sad(int a, int b, unsigned c) {
  return (unsigned)(a < b ? b - a : a - b) + c;
}
STRIDE_DEVICE unsigned __funnelshift_l(unsigned low, unsigned high, unsigned n) {
  return (unsigned)((((unsigned long long)high << 32 | low) << (n & 31)) >> 32);
}
STRIDE_DEVICE unsigned __funnelshift_r(unsigned low, unsigned high, unsigned n) {
  return (unsigned)(((unsigned long long)high << 32 | low) >> (n & 31));
}
STRIDE_DEVICE unsigned __byte_perm(unsigned x, unsigned y, unsigned selector) {
  unsigned long long both = (unsigned long long)y << 32 | x;
  unsigned result = 0;
  for (int i = 0; i < 4; ++i)
    result |= (unsigned)(both >> ((selector >> (4 * i) & 7) * 8) & 0xff) << (8 * i);
  return result;
}
STRIDE_DEVICE int __dp4a(int a, int b, int c) {
  for (int i = 0; i < 4; ++i)
    c += (int)(signed char)(a >> (8 * i)) * (int)(signed char)(b >> (8 * i));
  return c;
}

template <class T>
STRIDE_DEVICE T __ldg(const T* p) {
  return *p;
}
template <class T>
STRIDE_DEVICE T __ldcg(const T* p) {
  return *p;
}
template <class T>
STRIDE_DEVICE T __ldcs(const T* p) {
  return *p;
}
template <class T>
STRIDE_DEVICE void __stcs(T* p, T v) {
  *p = v;
}
STRIDE_DEVICE long long clock64() { return (long long)__builtin_readcyclecounter(); }
STRIDE_DEVICE int clock() { return (int)__builtin_readcyclecounter(); }
STRIDE_DEVICE void __nanosleep(unsigned) {}
