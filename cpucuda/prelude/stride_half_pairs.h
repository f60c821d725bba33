// <cuda_fp16.h> and <cuda_bf16.h>: pairs of 16-bit numbers, conversions with other roundings,
// saturating and relu arithmetic, elementary functions, atomics.
#pragma once

struct __half_raw {
  unsigned short x;
};
struct __half2_raw {
  unsigned short x, y;
};
typedef __half_raw __nv_half_raw;
typedef __half nv_half;
typedef __half2 nv_half2;
typedef __nv_bfloat162 nv_bfloat162;
typedef __half __nv_half;
typedef __half2 __nv_half2;

namespace __stride {

template <class H>
STRIDE_DEVICE unsigned short half_bits(H x) {
  return __builtin_bit_cast(unsigned short, x);
}
template <class H>
STRIDE_DEVICE H from_half_bits(unsigned short bits) {
  return __builtin_bit_cast(H, bits);
}
// The next number of H away from zero (`out`) or towards it.
template <class H>
STRIDE_DEVICE H half_step(H x, bool out) {
  return from_half_bits<H>((unsigned short)(half_bits(x) + (out ? 1 : -1)));
}
// Rounded towards zero, down or up, from a value that rounds to the nearest first.
enum Rounding { kToZero, kDown, kUp };
template <class H, class T>
STRIDE_DEVICE H round_half(T x, Rounding way) {
  H nearest((float)x);
  // A double rounds twice above: the float between must not hide which side it is on.
  float got = (float)nearest;
  if (x != x || (T)got == x) return nearest;
  bool above = (T)got > x;
  bool down = way == kDown || (way == kToZero && x > 0);
  if (above == down) {
    if (got == 0) return from_half_bits<H>(above ? 0x8001 : 0x0001);
    return half_step(nearest, (got > 0) != above);
  }
  return nearest;
}
template <class H>
STRIDE_DEVICE H saturate_half(float x) {
  return H(x > 0 ? (x < 1 ? x : 1.0f) : 0.0f);
}
template <class H>
STRIDE_DEVICE H relu_half(float x) {
  return H(x != x ? x : x > 0 ? x : 0.0f);
}
// CUDA clamps what an integer cannot hold, and makes NaN zero.
template <class I>
STRIDE_DEVICE I half_to_integer(float x) {
  constexpr int kBits = 8 * sizeof(I) - ((I)-1 < 0 ? 1 : 0);
  constexpr I kMin = (I)-1 < 0 ? (I)(1ull << kBits) : (I)0;
  constexpr I kMax = (I)(kBits == 64 ? ~0ull : (1ull << kBits) - 1);
  const float limit = kBits == 64 ? 0x1p64f : (float)(1ull << kBits);
  if (x != x) return 0;
  if (x >= limit) return kMax;
  if (x <= (float)kMin) return kMin;
  return (I)x;
}
template <class H>
STRIDE_DEVICE H half_max_nan(H a, H b) {
  float x = (float)a, y = (float)b;
  return x != x || y != y ? H(__builtin_nanf("")) : H(__builtin_fmaxf(x, y));
}
template <class H>
STRIDE_DEVICE H half_min_nan(H a, H b) {
  float x = (float)a, y = (float)b;
  return x != x || y != y ? H(__builtin_nanf("")) : H(__builtin_fminf(x, y));
}
template <class Bits, class V>
STRIDE_DEVICE V add_by_exchange(V* p, V value) {
  Bits old = __atomic_load_n((Bits*)p, __ATOMIC_RELAXED);
  for (;;) {
    V sum = __builtin_bit_cast(V, old) + value;
    if (__atomic_compare_exchange_n((Bits*)p, &old, __builtin_bit_cast(Bits, sum), false,
                                    __ATOMIC_RELAXED, __ATOMIC_RELAXED))
      return __builtin_bit_cast(V, old);
  }
}

}  // namespace __stride

// One number. `word` is how conversions call the type.
#define STRIDE_HALF_TO(H, word, integer, I)                               \
  STRIDE_DEVICE I __##word##2##integer##_rn(H x) {                        \
    return __stride::half_to_integer<I>(__builtin_rintf((float)x));       \
  }                                                                       \
  STRIDE_DEVICE I __##word##2##integer##_rz(H x) {                        \
    return __stride::half_to_integer<I>(__builtin_truncf((float)x));      \
  }                                                                       \
  STRIDE_DEVICE I __##word##2##integer##_rd(H x) {                        \
    return __stride::half_to_integer<I>(__builtin_floorf((float)x));      \
  }                                                                       \
  STRIDE_DEVICE I __##word##2##integer##_ru(H x) {                        \
    return __stride::half_to_integer<I>(__builtin_ceilf((float)x));       \
  }                                                                       \
  STRIDE_DEVICE H __##integer##2##word##_rn(I x) { return H((float)x); }  \
  STRIDE_DEVICE H __##integer##2##word##_rz(I x) {                        \
    return __stride::round_half<H, double>((double)x, __stride::kToZero); \
  }                                                                       \
  STRIDE_DEVICE H __##integer##2##word##_rd(I x) {                        \
    return __stride::round_half<H, double>((double)x, __stride::kDown);   \
  }                                                                       \
  STRIDE_DEVICE H __##integer##2##word##_ru(I x) {                        \
    return __stride::round_half<H, double>((double)x, __stride::kUp);     \
  }
#define STRIDE_HALF_FUNCTION(H, name, expression) \
  STRIDE_DEVICE H name(H a) {                     \
    float x = (float)a;                           \
    return H(expression);                         \
  }
#define STRIDE_HALF_UNORDERED(H, name, op) \
  STRIDE_DEVICE bool name(H a, H b) {      \
    float x = (float)a, y = (float)b;      \
    return x != x || y != y || x op y;     \
  }
#define STRIDE_HALF_MORE(H, word)                                                             \
  STRIDE_DEVICE H __float2##word##_rz(float x) {                                              \
    return __stride::round_half<H, float>(x, __stride::kToZero);                              \
  }                                                                                           \
  STRIDE_DEVICE H __float2##word##_rd(float x) {                                              \
    return __stride::round_half<H, float>(x, __stride::kDown);                                \
  }                                                                                           \
  STRIDE_DEVICE H __float2##word##_ru(float x) {                                              \
    return __stride::round_half<H, float>(x, __stride::kUp);                                  \
  }                                                                                           \
  STRIDE_DEVICE short __##word##_as_short(H x) { return (short)__stride::half_bits(x); }      \
  STRIDE_DEVICE H __short_as_##word(short x) {                                                \
    return __stride::from_half_bits<H>((unsigned short)x);                                    \
  }                                                                                           \
  STRIDE_DEVICE H __hadd_rn(H a, H b) { return a + b; }                                       \
  STRIDE_DEVICE H __hsub_rn(H a, H b) { return a - b; }                                       \
  STRIDE_DEVICE H __hmul_rn(H a, H b) { return a * b; }                                       \
  STRIDE_DEVICE H __hadd_sat(H a, H b) { return __stride::saturate_half<H>((float)(a + b)); } \
  STRIDE_DEVICE H __hsub_sat(H a, H b) { return __stride::saturate_half<H>((float)(a - b)); } \
  STRIDE_DEVICE H __hmul_sat(H a, H b) { return __stride::saturate_half<H>((float)(a * b)); } \
  STRIDE_DEVICE H __hfma_sat(H a, H b, H c) {                                                 \
    return __stride::saturate_half<H>((float)__hfma(a, b, c));                                \
  }                                                                                           \
  STRIDE_DEVICE H __hfma_relu(H a, H b, H c) {                                                \
    return __stride::relu_half<H>((float)__hfma(a, b, c));                                    \
  }                                                                                           \
  STRIDE_DEVICE H __hmax_nan(H a, H b) { return __stride::half_max_nan(a, b); }               \
  STRIDE_DEVICE H __hmin_nan(H a, H b) { return __stride::half_min_nan(a, b); }               \
  STRIDE_DEVICE int __hisinf(H a) { return isinf((float)a) ? ((float)a > 0 ? 1 : -1) : 0; }   \
  STRIDE_HALF_UNORDERED(H, __hequ, ==)                                                        \
  STRIDE_HALF_UNORDERED(H, __hneu, !=)                                                        \
  STRIDE_HALF_UNORDERED(H, __hltu, <)                                                         \
  STRIDE_HALF_UNORDERED(H, __hleu, <=)                                                        \
  STRIDE_HALF_UNORDERED(H, __hgtu, >)                                                         \
  STRIDE_HALF_UNORDERED(H, __hgeu, >=)                                                        \
  STRIDE_HALF_FUNCTION(H, hrcp, 1.0f / x)                                                     \
  STRIDE_HALF_FUNCTION(H, hrsqrt, rsqrtf(x))                                                  \
  STRIDE_HALF_FUNCTION(H, hlog2, log2f(x))                                                    \
  STRIDE_HALF_FUNCTION(H, hlog10, log10f(x))                                                  \
  STRIDE_HALF_FUNCTION(H, hexp2, exp2f(x))                                                    \
  STRIDE_HALF_FUNCTION(H, hexp10, exp10f(x))                                                  \
  STRIDE_HALF_FUNCTION(H, htanh, tanhf(x))                                                    \
  STRIDE_HALF_FUNCTION(H, htanh_approx, tanhf(x))                                             \
  STRIDE_HALF_FUNCTION(H, hfloor, __builtin_floorf(x))                                        \
  STRIDE_HALF_FUNCTION(H, hceil, __builtin_ceilf(x))                                          \
  STRIDE_HALF_FUNCTION(H, htrunc, __builtin_truncf(x))                                        \
  STRIDE_HALF_FUNCTION(H, hrint, __builtin_rintf(x))                                          \
  STRIDE_DEVICE H operator+(H a) { return a; }                                                \
  STRIDE_DEVICE H& operator++(H& a) { return a = a + H(1.0f); }                               \
  STRIDE_DEVICE H& operator--(H& a) { return a = a - H(1.0f); }                               \
  STRIDE_DEVICE H operator++(H& a, int) {                                                     \
    H old = a;                                                                                \
    ++a;                                                                                      \
    return old;                                                                               \
  }                                                                                           \
  STRIDE_DEVICE H operator--(H& a, int) {                                                     \
    H old = a;                                                                                \
    --a;                                                                                      \
    return old;                                                                               \
  }                                                                                           \
  STRIDE_HALF_TO(H, word, int, int)                                                           \
  STRIDE_HALF_TO(H, word, uint, unsigned)                                                     \
  STRIDE_HALF_TO(H, word, short, short)                                                       \
  STRIDE_HALF_TO(H, word, ushort, unsigned short)                                             \
  STRIDE_HALF_TO(H, word, ll, long long)                                                      \
  STRIDE_HALF_TO(H, word, ull, unsigned long long)                                            \
  STRIDE_DEVICE H atomicAdd(H* p, H value) {                                                  \
    return __stride::add_by_exchange<unsigned short>(p, value);                               \
  }
STRIDE_HALF_MORE(__half, half)
STRIDE_HALF_MORE(__nv_bfloat16, bfloat16)
STRIDE_DEVICE unsigned short __bfloat16_as_ushort(__nv_bfloat16 x) {
  return __stride::half_bits(x);
}
STRIDE_DEVICE __nv_bfloat16 __ushort_as_bfloat16(unsigned short x) {
  return __stride::from_half_bits<__nv_bfloat16>(x);
}
STRIDE_DEVICE __nv_bfloat16 __double2bfloat16(double x) { return __nv_bfloat16(x); }

// Two numbers, one operation for both.
#define STRIDE_PAIR2(H2, name, one) \
  STRIDE_DEVICE H2 name(H2 a, H2 b) { return H2(one(a.x, b.x), one(a.y, b.y)); }
#define STRIDE_PAIR3(H2, name, one) \
  STRIDE_DEVICE H2 name(H2 a, H2 b, H2 c) { return H2(one(a.x, b.x, c.x), one(a.y, b.y, c.y)); }
#define STRIDE_PAIR1(H2, name, one) \
  STRIDE_DEVICE H2 name(H2 a) { return H2(one(a.x), one(a.y)); }
// Comparison in its forms: numbers 1 and 0, all or nothing for the pair, masks of bits.
#define STRIDE_PAIR_COMPARISON(H, H2, name)                                                 \
  STRIDE_DEVICE H2 __h##name##2(H2 a, H2 b) {                                               \
    return H2(H(__h##name(a.x, b.x) ? 1.0f : 0.0f), H(__h##name(a.y, b.y) ? 1.0f : 0.0f));  \
  }                                                                                         \
  STRIDE_DEVICE bool __hb##name##2(H2 a, H2 b) {                                            \
    return __h##name(a.x, b.x) && __h##name(a.y, b.y);                                      \
  }                                                                                         \
  STRIDE_DEVICE unsigned __h##name##2_mask(H2 a, H2 b) {                                    \
    return (__h##name(a.x, b.x) ? 0xffffu : 0u) | (__h##name(a.y, b.y) ? 0xffff0000u : 0u); \
  }
#define STRIDE_PAIR_COMPARISONS(H, H2, name) \
  STRIDE_PAIR_COMPARISON(H, H2, name)        \
  STRIDE_PAIR_COMPARISON(H, H2, name##u)
#define STRIDE_PAIR_OPERATOR(H2, op)                                              \
  STRIDE_DEVICE H2 operator op(H2 a, H2 b) { return H2(a.x op b.x, a.y op b.y); } \
  STRIDE_DEVICE H2& operator op##=(H2& a, H2 b) { return a = a op b; }
#define STRIDE_PAIR_TRUTH(H2, op) \
  STRIDE_DEVICE bool operator op(H2 a, H2 b) { return a.x op b.x && a.y op b.y; }
#define STRIDE_HALF_PAIR(H, H2)                                                \
  STRIDE_PAIR_OPERATOR(H2, +)                                                  \
  STRIDE_PAIR_OPERATOR(H2, -)                                                  \
  STRIDE_PAIR_OPERATOR(H2, *)                                                  \
  STRIDE_PAIR_OPERATOR(H2, /)                                                  \
  STRIDE_DEVICE H2 operator-(H2 a) { return H2(-a.x, -a.y); }                  \
  STRIDE_DEVICE H2 operator+(H2 a) { return a; }                               \
  STRIDE_DEVICE H2& operator++(H2& a) { return a += H2(H(1.0f), H(1.0f)); }    \
  STRIDE_DEVICE H2& operator--(H2& a) { return a -= H2(H(1.0f), H(1.0f)); }    \
  STRIDE_PAIR_TRUTH(H2, ==)                                                    \
  STRIDE_DEVICE bool operator!=(H2 a, H2 b) { return !(a == b); }              \
  STRIDE_PAIR_TRUTH(H2, <)                                                     \
  STRIDE_PAIR_TRUTH(H2, >)                                                     \
  STRIDE_PAIR_TRUTH(H2, <=)                                                    \
  STRIDE_PAIR_TRUTH(H2, >=)                                                    \
  STRIDE_PAIR2(H2, __hsub2, __hsub)                                            \
  STRIDE_PAIR2(H2, __h2div, __hdiv)                                            \
  STRIDE_PAIR2(H2, __hadd2_rn, __hadd)                                         \
  STRIDE_PAIR2(H2, __hsub2_rn, __hsub)                                         \
  STRIDE_PAIR2(H2, __hmul2_rn, __hmul)                                         \
  STRIDE_PAIR2(H2, __hadd2_sat, __hadd_sat)                                    \
  STRIDE_PAIR2(H2, __hsub2_sat, __hsub_sat)                                    \
  STRIDE_PAIR2(H2, __hmul2_sat, __hmul_sat)                                    \
  STRIDE_PAIR3(H2, __hfma2_sat, __hfma_sat)                                    \
  STRIDE_PAIR3(H2, __hfma2_relu, __hfma_relu)                                  \
  STRIDE_PAIR2(H2, __hmax2, __hmax)                                            \
  STRIDE_PAIR2(H2, __hmin2, __hmin)                                            \
  STRIDE_PAIR2(H2, __hmax2_nan, __hmax_nan)                                    \
  STRIDE_PAIR2(H2, __hmin2_nan, __hmin_nan)                                    \
  STRIDE_PAIR1(H2, __hneg2, __hneg)                                            \
  STRIDE_PAIR1(H2, __habs2, __habs)                                            \
  STRIDE_PAIR1(H2, h2exp, hexp)                                                \
  STRIDE_PAIR1(H2, h2exp2, hexp2)                                              \
  STRIDE_PAIR1(H2, h2exp10, hexp10)                                            \
  STRIDE_PAIR1(H2, h2log, hlog)                                                \
  STRIDE_PAIR1(H2, h2log2, hlog2)                                              \
  STRIDE_PAIR1(H2, h2log10, hlog10)                                            \
  STRIDE_PAIR1(H2, h2sqrt, hsqrt)                                              \
  STRIDE_PAIR1(H2, h2rsqrt, hrsqrt)                                            \
  STRIDE_PAIR1(H2, h2rcp, hrcp)                                                \
  STRIDE_PAIR1(H2, h2sin, hsin)                                                \
  STRIDE_PAIR1(H2, h2cos, hcos)                                                \
  STRIDE_PAIR1(H2, h2tanh, htanh)                                              \
  STRIDE_PAIR1(H2, h2tanh_approx, htanh_approx)                                \
  STRIDE_PAIR1(H2, h2floor, hfloor)                                            \
  STRIDE_PAIR1(H2, h2ceil, hceil)                                              \
  STRIDE_PAIR1(H2, h2trunc, htrunc)                                            \
  STRIDE_PAIR1(H2, h2rint, hrint)                                              \
  STRIDE_PAIR_COMPARISONS(H, H2, eq)                                           \
  STRIDE_PAIR_COMPARISONS(H, H2, ne)                                           \
  STRIDE_PAIR_COMPARISONS(H, H2, lt)                                           \
  STRIDE_PAIR_COMPARISONS(H, H2, le)                                           \
  STRIDE_PAIR_COMPARISONS(H, H2, gt)                                           \
  STRIDE_PAIR_COMPARISONS(H, H2, ge)                                           \
  STRIDE_DEVICE H2 __hisnan2(H2 a) {                                           \
    return H2(H(__hisnan(a.x) ? 1.0f : 0.0f), H(__hisnan(a.y) ? 1.0f : 0.0f)); \
  }                                                                            \
  STRIDE_DEVICE H2 __hcmadd(H2 a, H2 b, H2 c) {                                \
    H x = __hfma(a.x, b.x, c.x), y = __hfma(a.x, b.y, c.y);                    \
    return H2(__hfma(__hneg(a.y), b.y, x), __hfma(a.y, b.x, y));               \
  }                                                                            \
  STRIDE_DEVICE H2 atomicAdd(H2* p, H2 value) {                                \
    return __stride::add_by_exchange<unsigned>(p, value);                      \
  }
STRIDE_HALF_PAIR(__half, __half2)
STRIDE_HALF_PAIR(__nv_bfloat16, __nv_bfloat162)
STRIDE_PAIR2(__nv_bfloat162, __hadd2, __hadd)
STRIDE_PAIR2(__nv_bfloat162, __hmul2, __hmul)
STRIDE_PAIR3(__nv_bfloat162, __hfma2, __hfma)

#define STRIDE_PAIR_CONVERSIONS(H, H2, word)                                               \
  STRIDE_DEVICE H2 __##word##2##word##2(H x) { return H2(x, x); }                          \
  STRIDE_DEVICE H2 __low2##word##2(H2 v) { return H2(v.x, v.x); }                          \
  STRIDE_DEVICE H2 __high2##word##2(H2 v) { return H2(v.y, v.y); }                         \
  STRIDE_DEVICE H2 __lows2##word##2(H2 a, H2 b) { return H2(a.x, b.x); }                   \
  STRIDE_DEVICE H2 __highs2##word##2(H2 a, H2 b) { return H2(a.y, b.y); }                  \
  STRIDE_DEVICE H2 make_##word##2(H x, H y) { return H2(x, y); }                           \
  STRIDE_DEVICE float2 __##word##22float2(H2 v) { return float2{(float)v.x, (float)v.y}; } \
  STRIDE_DEVICE H2 __float22##word##2_rn(float2 v) { return H2(H(v.x), H(v.y)); }          \
  STRIDE_DEVICE H2 __lowhigh2highlow(H2 v) { return H2(v.y, v.x); }
STRIDE_PAIR_CONVERSIONS(__half, __half2, half)
STRIDE_PAIR_CONVERSIONS(__nv_bfloat16, __nv_bfloat162, bfloat16)
STRIDE_DEVICE __nv_bfloat162 __halves2bfloat162(__nv_bfloat16 a, __nv_bfloat16 b) {
  return __nv_bfloat162(a, b);
}
STRIDE_DEVICE __nv_bfloat162 __float2bfloat162_rn(float x) {
  return __nv_bfloat162(__nv_bfloat16(x), __nv_bfloat16(x));
}
STRIDE_DEVICE __nv_bfloat162 __floats2bfloat162_rn(float a, float b) {
  return __nv_bfloat162(__nv_bfloat16(a), __nv_bfloat16(b));
}
STRIDE_DEVICE __nv_bfloat16 __low2bfloat16(__nv_bfloat162 v) { return v.x; }
STRIDE_DEVICE __nv_bfloat16 __high2bfloat16(__nv_bfloat162 v) { return v.y; }
STRIDE_DEVICE float __low2float(__nv_bfloat162 v) { return (float)v.x; }
STRIDE_DEVICE float __high2float(__nv_bfloat162 v) { return (float)v.y; }

#define CUDART_INF_FP16 __ushort_as_half((unsigned short)0x7c00)
#define CUDART_NAN_FP16 __ushort_as_half((unsigned short)0x7fff)
#define CUDART_MAX_NORMAL_FP16 __ushort_as_half((unsigned short)0x7bff)
#define CUDART_MIN_DENORM_FP16 __ushort_as_half((unsigned short)0x0001)
#define CUDART_NEG_ZERO_FP16 __ushort_as_half((unsigned short)0x8000)
#define CUDART_ZERO_FP16 __ushort_as_half((unsigned short)0x0000)
#define CUDART_ONE_FP16 __ushort_as_half((unsigned short)0x3c00)
#define CUDART_INF_BF16 __ushort_as_bfloat16((unsigned short)0x7f80)
#define CUDART_NAN_BF16 __ushort_as_bfloat16((unsigned short)0x7fff)
#define CUDART_MAX_NORMAL_BF16 __ushort_as_bfloat16((unsigned short)0x7f7f)
#define CUDART_ZERO_BF16 __ushort_as_bfloat16((unsigned short)0x0000)
#define CUDART_ONE_BF16 __ushort_as_bfloat16((unsigned short)0x3f80)
