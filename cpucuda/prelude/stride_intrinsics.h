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

#define STRIDE_CONVERT(name, From, To)                                          \
  STRIDE_DEVICE To name##_rn(From x) { return (To)__builtin_rint((double)x); }  \
  STRIDE_DEVICE To name##_rz(From x) { return (To)x; }                          \
  STRIDE_DEVICE To name##_rd(From x) { return (To)__builtin_floor((double)x); } \
  STRIDE_DEVICE To name##_ru(From x) { return (To)__builtin_ceil((double)x); }
STRIDE_CONVERT(__float2ll, float, long long)
STRIDE_CONVERT(__float2ull, float, unsigned long long)
STRIDE_CONVERT(__double2ll, double, long long)
STRIDE_CONVERT(__double2ull, double, unsigned long long)
STRIDE_CONVERT(__double2uint, double, unsigned)
STRIDE_DEVICE int __double2int_rd(double x) { return (int)__builtin_floor(x); }
STRIDE_DEVICE int __double2int_ru(double x) { return (int)__builtin_ceil(x); }
STRIDE_DEVICE unsigned __float2uint_rd(float x) { return (unsigned)__builtin_floorf(x); }
STRIDE_DEVICE unsigned __float2uint_ru(float x) { return (unsigned)__builtin_ceilf(x); }
STRIDE_DEVICE float __ll2float_rn(long long x) { return (float)x; }
STRIDE_DEVICE float __ull2float_rn(unsigned long long x) { return (float)x; }
STRIDE_DEVICE double __int2double_rn(int x) { return (double)x; }
STRIDE_DEVICE double __uint2double_rn(unsigned x) { return (double)x; }
STRIDE_DEVICE double __ll2double_rn(long long x) { return (double)x; }
STRIDE_DEVICE double __ull2double_rn(unsigned long long x) { return (double)x; }
// Directed roundings: the nearest number, or the one next to it. `Wide` holds `x` and every result.
namespace __stride {
STRIDE_DEVICE float beside(float x, bool above) {
  if (x == 0) return above ? from_bits((uint32_t)1) : -from_bits((uint32_t)1);
  const uint32_t word = bits(x);
  return from_bits((uint32_t)((x > 0) == above ? word + 1 : word - 1));
}
STRIDE_DEVICE double beside(double x, bool above) {
  if (x == 0) return above ? from_bits((uint64_t)1) : -from_bits((uint64_t)1);
  const uint64_t word = bits(x);
  return from_bits((uint64_t)((x > 0) == above ? word + 1 : word - 1));
}
// Whether `made` is above `x`, below it or equal: 1, -1 or 0.
template <class To>
STRIDE_DEVICE int side(To made, double x) {
  return ((double)made > x) - ((double)made < x);
}
template <class To>
STRIDE_DEVICE int side(To made, long long x) {
  // An integer: floats of 2^53 and more are.
  if ((double)made >= 9223372036854775808.0) return 1;
  return ((long long)made > x) - ((long long)made < x);
}
template <class To>
STRIDE_DEVICE int side(To made, unsigned long long x) {
  if ((double)made >= 18446744073709551616.0) return 1;
  return ((unsigned long long)made > x) - ((unsigned long long)made < x);
}
template <class To, class Wide>
STRIDE_DEVICE To round_down(Wide x) {
  const To made = (To)x;
  return side(made, x) > 0 ? beside(made, false) : made;
}
template <class To, class Wide>
STRIDE_DEVICE To round_up(Wide x) {
  const To made = (To)x;
  return side(made, x) < 0 ? beside(made, true) : made;
}
template <class To, class Wide>
STRIDE_DEVICE To round_to_zero(Wide x) {
  return x < 0 ? round_up<To>(x) : round_down<To>(x);
}
}  // namespace __stride
#define STRIDE_ROUND(name, From, Wide, To)                                         \
  STRIDE_DEVICE To name##_rd(From x) { return __stride::round_down<To>((Wide)x); } \
  STRIDE_DEVICE To name##_ru(From x) { return __stride::round_up<To>((Wide)x); }   \
  STRIDE_DEVICE To name##_rz(From x) { return __stride::round_to_zero<To>((Wide)x); }
STRIDE_ROUND(__int2float, int, long long, float)
STRIDE_ROUND(__uint2float, unsigned, unsigned long long, float)
STRIDE_ROUND(__ll2float, long long, long long, float)
STRIDE_ROUND(__ull2float, unsigned long long, unsigned long long, float)
STRIDE_ROUND(__ll2double, long long, long long, double)
STRIDE_ROUND(__ull2double, unsigned long long, unsigned long long, double)
STRIDE_ROUND(__double2float, double, double, float)
STRIDE_DEVICE double __drcp_rn(double x) { return 1 / x; }

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

STRIDE_DEVICE unsigned __usad(unsigned a, unsigned b, unsigned c) {
  return (a < b ? b - a : a - b) + c;
}
// Averages, without overflow; `r` rounds up.
STRIDE_DEVICE int __hadd(int a, int b) { return (int)(((long long)a + b) >> 1); }
STRIDE_DEVICE int __rhadd(int a, int b) { return (int)(((long long)a + b + 1) >> 1); }
STRIDE_DEVICE unsigned __uhadd(unsigned a, unsigned b) {
  return (unsigned)(((unsigned long long)a + b) >> 1);
}
STRIDE_DEVICE unsigned __urhadd(unsigned a, unsigned b) {
  return (unsigned)(((unsigned long long)a + b + 1) >> 1);
}
STRIDE_DEVICE unsigned __dp4a(unsigned a, unsigned b, unsigned c) {
  for (int i = 0; i < 32; i += 8) c += (a >> i & 0xff) * (b >> i & 0xff);
  return c;
}
STRIDE_DEVICE unsigned __funnelshift_lc(unsigned low, unsigned high, unsigned n) {
  return (unsigned)((((unsigned long long)high << 32 | low) << (n < 32 ? n : 32)) >> 32);
}
STRIDE_DEVICE unsigned __funnelshift_rc(unsigned low, unsigned high, unsigned n) {
  return (unsigned)(((unsigned long long)high << 32 | low) >> (n < 32 ? n : 32));
}

// Caches are the processor's own, so a hint changes nothing.
#define STRIDE_CACHED_LOAD(name)     \
  template <class T>                 \
  STRIDE_DEVICE T name(const T* p) { \
    return *p;                       \
  }
#define STRIDE_CACHED_STORE(name)                          \
  template <class T>                                       \
  STRIDE_DEVICE void name(T* p, __stride::Same<T> value) { \
    *p = value;                                            \
  }
namespace __stride {
template <class T>
struct Identity {
  typedef T type;
};
// Stands for T without taking part in its deduction.
template <class T>
using Same = typename Identity<T>::type;
}  // namespace __stride
STRIDE_CACHED_LOAD(__ldg)
STRIDE_CACHED_LOAD(__ldca)
STRIDE_CACHED_LOAD(__ldcg)
STRIDE_CACHED_LOAD(__ldcs)
STRIDE_CACHED_LOAD(__ldcv)
STRIDE_CACHED_LOAD(__ldlu)
STRIDE_CACHED_STORE(__stcg)
STRIDE_CACHED_STORE(__stcs)
STRIDE_CACHED_STORE(__stwb)
STRIDE_CACHED_STORE(__stwt)
STRIDE_DEVICE long long clock64() { return (long long)__builtin_readcyclecounter(); }
STRIDE_DEVICE clock_t clock() { return (clock_t)__builtin_readcyclecounter(); }
STRIDE_DEVICE void __nanosleep(unsigned) {}
STRIDE_DEVICE unsigned long long __globaltimer() {
  return (unsigned long long)__builtin_readcyclecounter();
}

// Address spaces of pointers.
STRIDE_DEVICE unsigned __isShared(const void* p) {
  const char* shared =
      (const char*)__stride_pointer(__builtin_offsetof(stride::cpucuda::BlockContext, shared));
  unsigned bytes = __stride_field(__builtin_offsetof(stride::cpucuda::BlockContext, shared_bytes));
  return (size_t)((const char*)p - shared) < bytes;
}
STRIDE_DEVICE unsigned __isLocal(const void* p) {
  // Variables of a thread live in its block's scratch memory, or on the stack.
  const char* scratch =
      (const char*)__stride_pointer(__builtin_offsetof(stride::cpucuda::BlockContext, scratch));
  const char* end =
      (const char*)__stride_pointer(__builtin_offsetof(stride::cpucuda::BlockContext, scratch_end));
  const char* frame = (const char*)__builtin_frame_address(0);
  size_t above = (size_t)((const char*)p - frame + (64 << 10));
  return ((const char*)p >= scratch && (const char*)p < end) || above < (128 << 10);
}
STRIDE_DEVICE unsigned __isGlobal(const void* p) {
  return p != 0 && !__isShared(p) && !__isLocal(p);
}
// An address of shared memory is an offset into the block's, so that it fits 32 bits, as inline PTX
// has it.
STRIDE_DEVICE size_t __cvta_generic_to_shared(const void* p) {
  return (size_t)((const char*)p - (const char*)__stride_pointer(
                                       __builtin_offsetof(stride::cpucuda::BlockContext, shared)));
}
STRIDE_DEVICE void* __cvta_shared_to_generic(size_t p) {
  return (char*)__stride_pointer(__builtin_offsetof(stride::cpucuda::BlockContext, shared)) + p;
}
STRIDE_DEVICE size_t __cvta_generic_to_global(const void* p) { return (size_t)p; }
STRIDE_DEVICE void* __cvta_global_to_generic(size_t p) { return (void*)p; }
