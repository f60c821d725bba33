// CUDA's operations on the two halves or four bytes of a word.
#pragma once

namespace __stride {

// Applies `f` to each lane of `Lane` bits in both words, widened to int, and keeps its low bits.
template <class Lane, class F>
STRIDE_DEVICE unsigned each_lane(unsigned a, unsigned b, F f) {
  constexpr int kBits = 8 * sizeof(Lane);
  constexpr unsigned kMask = (1u << kBits) - 1;
  unsigned result = 0;
  for (int at = 0; at < 32; at += kBits)
    result |= ((unsigned)f((int)(Lane)(a >> at), (int)(Lane)(b >> at)) & kMask) << at;
  return result;
}
template <class Lane>
STRIDE_DEVICE int saturate(int x) {
  constexpr int kLow = (Lane)-1 < 0 ? -(1 << (8 * sizeof(Lane) - 1)) : 0;
  constexpr int kHigh = kLow + (1 << (8 * sizeof(Lane))) - 1;
  return x < kLow ? kLow : x > kHigh ? kHigh : x;
}
template <class Lane>
STRIDE_DEVICE unsigned sum_of_differences(unsigned a, unsigned b) {
  unsigned sum = 0;
  for (int at = 0; at < 32; at += 8 * (int)sizeof(Lane)) {
    int x = (Lane)(a >> at), y = (Lane)(b >> at);
    sum += (unsigned)(x < y ? y - x : x - y);
  }
  return sum;
}

}  // namespace __stride

#define STRIDE_LANES(name, Lane, expression)                                           \
  STRIDE_DEVICE unsigned name(unsigned a, unsigned b) {                                \
    return __stride::each_lane<Lane>(a, b, [](int x, int y) { return (expression); }); \
  }
#define STRIDE_LANES1(name, Lane, expression)                                         \
  STRIDE_DEVICE unsigned name(unsigned a) {                                           \
    return __stride::each_lane<Lane>(a, 0u, [](int x, int) { return (expression); }); \
  }
#define STRIDE_LANE_COMPARISON(name, n, Lane, op)        \
  STRIDE_LANES(__vcmp##name##n, Lane, (x op y) ? -1 : 0) \
  STRIDE_LANES(__vset##name##n, Lane, (x op y) ? 1 : 0)
#define STRIDE_LANE_FAMILY(n, Signed, Unsigned)                                  \
  STRIDE_LANES(__vadd##n, Unsigned, x + y)                                       \
  STRIDE_LANES(__vsub##n, Unsigned, x - y)                                       \
  STRIDE_LANES(__vaddss##n, Signed, __stride::saturate<Signed>(x + y))           \
  STRIDE_LANES(__vaddus##n, Unsigned, __stride::saturate<Unsigned>(x + y))       \
  STRIDE_LANES(__vsubss##n, Signed, __stride::saturate<Signed>(x - y))           \
  STRIDE_LANES(__vsubus##n, Unsigned, __stride::saturate<Unsigned>(x - y))       \
  STRIDE_LANES(__vavgs##n, Signed, (x + y + (x + y >= 0)) >> 1)                  \
  STRIDE_LANES(__vavgu##n, Unsigned, (x + y + 1) >> 1)                           \
  STRIDE_LANES(__vhaddu##n, Unsigned, (x + y) >> 1)                              \
  STRIDE_LANES(__vabsdiffs##n, Signed, x < y ? y - x : x - y)                    \
  STRIDE_LANES(__vabsdiffu##n, Unsigned, x < y ? y - x : x - y)                  \
  STRIDE_LANES(__vmaxs##n, Signed, x < y ? y : x)                                \
  STRIDE_LANES(__vmaxu##n, Unsigned, x < y ? y : x)                              \
  STRIDE_LANES(__vmins##n, Signed, x < y ? x : y)                                \
  STRIDE_LANES(__vminu##n, Unsigned, x < y ? x : y)                              \
  STRIDE_LANES1(__vneg##n, Signed, -x)                                           \
  STRIDE_LANES1(__vnegss##n, Signed, __stride::saturate<Signed>(-x))             \
  STRIDE_LANES1(__vabs##n, Signed, x < 0 ? -x : x)                               \
  STRIDE_LANES1(__vabsss##n, Signed, __stride::saturate<Signed>(x < 0 ? -x : x)) \
  STRIDE_LANE_COMPARISON(eq, n, Unsigned, ==)                                    \
  STRIDE_LANE_COMPARISON(ne, n, Unsigned, !=)                                    \
  STRIDE_LANE_COMPARISON(gts, n, Signed, >)                                      \
  STRIDE_LANE_COMPARISON(gtu, n, Unsigned, >)                                    \
  STRIDE_LANE_COMPARISON(ges, n, Signed, >=)                                     \
  STRIDE_LANE_COMPARISON(geu, n, Unsigned, >=)                                   \
  STRIDE_LANE_COMPARISON(lts, n, Signed, <)                                      \
  STRIDE_LANE_COMPARISON(ltu, n, Unsigned, <)                                    \
  STRIDE_LANE_COMPARISON(les, n, Signed, <=)                                     \
  STRIDE_LANE_COMPARISON(leu, n, Unsigned, <=)                                   \
  STRIDE_DEVICE unsigned __vsads##n(unsigned a, unsigned b) {                    \
    return __stride::sum_of_differences<Signed>(a, b);                           \
  }                                                                              \
  STRIDE_DEVICE unsigned __vsadu##n(unsigned a, unsigned b) {                    \
    return __stride::sum_of_differences<Unsigned>(a, b);                         \
  }
STRIDE_LANE_FAMILY(2, short, unsigned short)
STRIDE_LANE_FAMILY(4, signed char, unsigned char)

// Sums, the least and the greatest of three, and which of two it is (DPX).
namespace __stride {
template <class T>
STRIDE_DEVICE T greatest(T a, T b) {
  return a < b ? b : a;
}
template <class T>
STRIDE_DEVICE T least(T a, T b) {
  return b < a ? b : a;
}
template <class Lane, class F>
STRIDE_DEVICE unsigned each_lane(unsigned a, unsigned b, unsigned c, F f) {
  unsigned result = 0;
  for (int at = 0; at < 32; at += 16) {
    const Lane made = f((Lane)(a >> at), (Lane)(b >> at), (Lane)(c >> at));
    result |= (unsigned)(unsigned short)made << at;
  }
  return result;
}
}  // namespace __stride

// `pick` is greatest or least, `relu` makes a result at least 0.
#define STRIDE_DPX_S16X2(max, pick, suffix, relu)                                           \
  STRIDE_DEVICE unsigned __viadd##max##_s16x2##suffix(unsigned a, unsigned b, unsigned c) { \
    return __stride::each_lane<short>(a, b, c, [](short x, short y, short z) {              \
      return (short)relu(__stride::pick((int)(short)(x + y), (int)z));                      \
    });                                                                                     \
  }                                                                                         \
  STRIDE_DEVICE unsigned __vi##max##3_s16x2##suffix(unsigned a, unsigned b, unsigned c) {   \
    return __stride::each_lane<short>(a, b, c, [](short x, short y, short z) {              \
      return (short)relu(__stride::pick(__stride::pick((int)x, (int)y), (int)z));           \
    });                                                                                     \
  }                                                                                         \
  STRIDE_DEVICE int __viadd##max##_s32##suffix(int a, int b, int c) {                       \
    return relu(__stride::pick((int)((unsigned)a + (unsigned)b), c));                       \
  }                                                                                         \
  STRIDE_DEVICE int __vi##max##3_s32##suffix(int a, int b, int c) {                         \
    return relu(__stride::pick(__stride::pick(a, b), c));                                   \
  }
#define STRIDE_DPX(max, pick)                                                                \
  STRIDE_DPX_S16X2(max, pick, , )                                                            \
  STRIDE_DPX_S16X2(max, pick, _relu, __stride_relu)                                          \
  STRIDE_DEVICE unsigned __viadd##max##_u16x2(unsigned a, unsigned b, unsigned c) {          \
    return __stride::each_lane<unsigned short>(                                              \
        a, b, c, [](unsigned short x, unsigned short y, unsigned short z) {                  \
          return __stride::pick((unsigned short)(x + y), z);                                 \
        });                                                                                  \
  }                                                                                          \
  STRIDE_DEVICE unsigned __vi##max##3_u16x2(unsigned a, unsigned b, unsigned c) {            \
    return __stride::each_lane<unsigned short>(                                              \
        a, b, c, [](unsigned short x, unsigned short y, unsigned short z) {                  \
          return __stride::pick(__stride::pick(x, y), z);                                    \
        });                                                                                  \
  }                                                                                          \
  STRIDE_DEVICE unsigned __viadd##max##_u32(unsigned a, unsigned b, unsigned c) {            \
    return __stride::pick(a + b, c);                                                         \
  }                                                                                          \
  STRIDE_DEVICE unsigned __vi##max##3_u32(unsigned a, unsigned b, unsigned c) {              \
    return __stride::pick(__stride::pick(a, b), c);                                          \
  }                                                                                          \
  STRIDE_DEVICE unsigned __vi##max##_s16x2_relu(unsigned a, unsigned b) {                    \
    return __stride::each_lane<short>(                                                       \
        a, b, [](int x, int y) { return __stride_relu(__stride::pick(x, y)); });             \
  }                                                                                          \
  STRIDE_DEVICE int __vi##max##_s32_relu(int a, int b) {                                     \
    return __stride_relu(__stride::pick(a, b));                                              \
  }                                                                                          \
  STRIDE_DEVICE int __vib##max##_s32(int a, int b, bool* first) {                            \
    *first = __stride::pick(a, b) == a;                                                      \
    return __stride::pick(a, b);                                                             \
  }                                                                                          \
  STRIDE_DEVICE unsigned __vib##max##_u32(unsigned a, unsigned b, bool* first) {             \
    *first = __stride::pick(a, b) == a;                                                      \
    return __stride::pick(a, b);                                                             \
  }                                                                                          \
  STRIDE_DEVICE unsigned __vib##max##_s16x2(unsigned a, unsigned b, bool* high, bool* low) { \
    const unsigned made =                                                                    \
        __stride::each_lane<short>(a, b, [](int x, int y) { return __stride::pick(x, y); }); \
    *high = made >> 16 == a >> 16;                                                           \
    *low = (made & 0xffff) == (a & 0xffff);                                                  \
    return made;                                                                             \
  }                                                                                          \
  STRIDE_DEVICE unsigned __vib##max##_u16x2(unsigned a, unsigned b, bool* high, bool* low) { \
    const unsigned made = __stride::each_lane<unsigned short>(                               \
        a, b, [](int x, int y) { return __stride::pick(x, y); });                            \
    *high = made >> 16 == a >> 16;                                                           \
    *low = (made & 0xffff) == (a & 0xffff);                                                  \
    return made;                                                                             \
  }
STRIDE_DEVICE int __stride_relu(int x) { return x < 0 ? 0 : x; }
STRIDE_DPX(max, greatest)
STRIDE_DPX(min, least)
