// cuRAND's device functions: the same sequences and states as the toolkit's for XORWOW, Philox,
// MRG32k3a and the Sobol families. Normal numbers agree but for the last bits of the elementary
// functions. Poisson numbers for means from 64 to 4000 have the distribution, by another method.
#pragma once

#include "stride_special_functions.h"
#include "stride_xorwow_jumps.h"

typedef unsigned curandDirectionVectors32_t[32];
typedef unsigned long long curandDirectionVectors64_t[64];

// The second of two normal numbers that were made together waits in the state.
#define STRIDE_CURAND_PAIR   \
  int boxmuller_flag;        \
  int boxmuller_flag_double; \
  float boxmuller_extra;     \
  double boxmuller_extra_double;
struct curandStateXORWOW {
  unsigned d, v[5];
  STRIDE_CURAND_PAIR
};
struct curandStatePhilox4_32_10 {
  uint4 ctr, output;
  uint2 key;
  unsigned STATE;
  STRIDE_CURAND_PAIR
};
struct curandStateMRG32k3a {
  unsigned s1[3], s2[3];
  STRIDE_CURAND_PAIR
};
#undef STRIDE_CURAND_PAIR
#define STRIDE_CURAND_SOBOL(name, Word)                \
  struct name {                                        \
    Word i, x, c, direction_vectors[8 * sizeof(Word)]; \
  };                                                   \
  typedef name name##_t;
STRIDE_CURAND_SOBOL(curandStateSobol32, unsigned)
STRIDE_CURAND_SOBOL(curandStateScrambledSobol32, unsigned)
STRIDE_CURAND_SOBOL(curandStateSobol64, unsigned long long)
STRIDE_CURAND_SOBOL(curandStateScrambledSobol64, unsigned long long)
#undef STRIDE_CURAND_SOBOL
typedef curandStateXORWOW curandStateXORWOW_t;
typedef curandStateXORWOW curandState_t;
typedef curandStateXORWOW curandState;
typedef curandStatePhilox4_32_10 curandStatePhilox4_32_10_t;
typedef curandStateMRG32k3a curandStateMRG32k3a_t;

namespace __stride {

template <class State>
STRIDE_DEVICE void clear_pair(State* state) {
  state->boxmuller_flag = state->boxmuller_flag_double = 0;
  state->boxmuller_extra = 0;
  state->boxmuller_extra_double = 0;
}

// XORWOW: one step of the shift register, and 2^k steps.
STRIDE_DEVICE void xorwow_step(unsigned* v) {
  unsigned t = v[0] ^ v[0] >> 2;
  unsigned next = v[4] ^ v[4] << 4 ^ t ^ t << 1;
  for (int i = 0; i < 4; ++i) v[i] = v[i + 1];
  v[4] = next;
}
STRIDE_DEVICE void xorwow_jump(unsigned* v, int k) {
  unsigned sum[5] = {};
  for (int i = 0; i < 160; ++i) {
    unsigned mask = 0u - (xorwow_jumps[k][i / 32] >> i % 32 & 1u);
    for (int j = 0; j < 5; ++j) sum[j] ^= v[j] & mask;
    xorwow_step(v);
  }
  for (int j = 0; j < 5; ++j) v[j] = sum[j];
}
STRIDE_DEVICE void xorwow_skip(unsigned* v, unsigned long long n, int first) {
  for (int k = first; n != 0; ++k, n >>= 1) {
    if (n & 1) xorwow_jump(v, k);
  }
}

// Philox4x32 with ten rounds.
STRIDE_DEVICE uint4 philox(uint4 counter, uint2 key) {
  for (int round = 0; round < 10; ++round) {
    unsigned long long a = 0xD2511F53ull * counter.x, b = 0xCD9E8D57ull * counter.z;
    counter = uint4{(unsigned)(b >> 32) ^ counter.y ^ key.x, (unsigned)b,
                    (unsigned)(a >> 32) ^ counter.w ^ key.y, (unsigned)a};
    key.x += 0x9E3779B9u;
    key.y += 0xBB67AE85u;
  }
  return counter;
}
STRIDE_DEVICE void philox_advance(curandStatePhilox4_32_10* state, unsigned long long n) {
  unsigned long long low = (unsigned long long)state->ctr.y << 32 | state->ctr.x, sum = low + n;
  state->ctr.x = (unsigned)sum;
  state->ctr.y = (unsigned)(sum >> 32);
  if (sum < low && ++state->ctr.z == 0) ++state->ctr.w;
  state->output = philox(state->ctr, state->key);
}

// MRG32k3a: numbers below the moduli.
static constexpr unsigned long long kMrg1 = 4294967087ull, kMrg2 = 4294944443ull;
struct MrgMatrix {
  unsigned long long at[3][3];
};
STRIDE_DEVICE MrgMatrix mrg_product(const MrgMatrix& a, const MrgMatrix& b, unsigned long long m) {
  MrgMatrix c;
  for (int i = 0; i < 3; ++i) {
    for (int j = 0; j < 3; ++j) {
      unsigned long long sum = 0;
      for (int k = 0; k < 3; ++k) sum = (sum + a.at[i][k] * b.at[k][j] % m) % m;
      c.at[i][j] = sum;
    }
  }
  return c;
}
STRIDE_DEVICE void mrg_skip(unsigned* s, MrgMatrix a, unsigned long long n, unsigned long long m) {
  for (; n != 0; n >>= 1) {
    if (n & 1) {
      unsigned long long next[3];
      for (int i = 0; i < 3; ++i) {
        next[i] = 0;
        for (int k = 0; k < 3; ++k) next[i] = (next[i] + a.at[i][k] * s[k] % m) % m;
      }
      for (int i = 0; i < 3; ++i) s[i] = (unsigned)next[i];
    }
    a = mrg_product(a, a, m);
  }
}
// A number from 1 to the first modulus.
STRIDE_DEVICE unsigned mrg_next(curandStateMRG32k3a* state) {
  unsigned* a = state->s1;
  unsigned* b = state->s2;
  unsigned long long p = (1403580ull * a[1] + 810728ull * (kMrg1 - a[0])) % kMrg1;
  unsigned long long q = (527612ull * b[2] + 1370589ull * (kMrg2 - b[0])) % kMrg2;
  a[0] = a[1], a[1] = a[2], a[2] = (unsigned)p;
  b[0] = b[1], b[1] = b[2], b[2] = (unsigned)q;
  return (unsigned)(p <= q ? p + kMrg1 - q : p - q);
}

STRIDE_DEVICE float uniform_of(unsigned x) { return __builtin_fmaf(x, 0x1p-32f, 0x1p-33f); }
STRIDE_DEVICE double uniform_double_of(unsigned x, unsigned y) {
  unsigned long long bits = (unsigned long long)x ^ (unsigned long long)y << 21;
  return bits * 0x1p-53 + 0x1p-54;
}
// Box and Muller's pair: the sine first.
STRIDE_DEVICE float2 normal_pair(unsigned x, unsigned y) {
  constexpr float kStep = 2.3283064e-10f * 6.2831855f;
  float radius = sqrtf(-2.0f * logf(uniform_of(x))), s, c;
  __sincosf(__builtin_fmaf(y, kStep, kStep / 2), &s, &c);
  return float2{s * radius, c * radius};
}
STRIDE_DEVICE double2 normal_pair_of(double u, double half_turns) {
  double radius = sqrt(-2.0 * log(u)), s, c;
  sincospi(half_turns, &s, &c);
  return double2{s * radius, c * radius};
}
STRIDE_DEVICE double2 normal_pair_double(uint4 x) {
  return normal_pair_of(uniform_double_of(x.x, x.y), 2 * uniform_double_of(x.z, x.w));
}
// By the inverse of the distribution, mirrored in the upper half to keep precision.
STRIDE_DEVICE float normal_inverse(unsigned x) {
  float sign = -1.4142135f;
  if (x > 0x80000000u) {
    x = ~x;
    sign = -sign;
  }
  return sign * erfcinvf(2.0f * uniform_of(x));
}
STRIDE_DEVICE double normal_inverse_double(unsigned x) {
  double sign = -M_SQRT2;
  if (x > 0x80000000u) {
    x = ~x;
    sign = -sign;
  }
  return sign * erfcinv(2.0 * (x * 0x1p-32 + 0x1p-33));
}
STRIDE_DEVICE double normal_inverse_double(unsigned long long x) {
  double sign = -M_SQRT2;
  x >>= 11;
  if (x > 0x10000000000000ull) {
    x = 0x1fffffffffffffull - x;
    sign = -sign;
  }
  return sign * erfcinv(2.0 * (x * 0x1p-53 + 0x1p-54));
}

}  // namespace __stride

STRIDE_DEVICE unsigned curand(curandStateXORWOW* state) {
  __stride::xorwow_step(state->v);
  state->d += 362437;
  return state->v[4] + state->d;
}
STRIDE_DEVICE void skipahead(unsigned long long n, curandStateXORWOW* state) {
  __stride::xorwow_skip(state->v, n, 0);
  state->d += 362437u * (unsigned)n;
}
// Sequences are 2^67 numbers apart, so the counter is where it was.
STRIDE_DEVICE void skipahead_sequence(unsigned long long n, curandStateXORWOW* state) {
  __stride::xorwow_skip(state->v, n, 67);
}
STRIDE_DEVICE void curand_init(unsigned long long seed, unsigned long long subsequence,
                               unsigned long long offset, curandStateXORWOW* state) {
  unsigned a = 1099087573u * ((unsigned)seed ^ 0xaad26b49u);
  unsigned b = 2591861531u * ((unsigned)(seed >> 32) ^ 0xf7dcefddu);
  state->d = 6615241u + a + b;
  state->v[0] = 123456789u + a;
  state->v[1] = 362436069u ^ a;
  state->v[2] = 521288629u + b;
  state->v[3] = 88675123u ^ b;
  state->v[4] = 5783321u + a;
  __stride::clear_pair(state);
  skipahead_sequence(subsequence, state);
  skipahead(offset, state);
}

STRIDE_DEVICE unsigned curand(curandStatePhilox4_32_10* state) {
  unsigned i = state->STATE++;
  const uint4& o = state->output;
  unsigned result = i == 1 ? o.y : i == 2 ? o.z : i == 3 ? o.w : o.x;
  if (state->STATE == 4) {
    state->STATE = 0;
    __stride::philox_advance(state, 1);
  }
  return result;
}
// Four numbers; the state stays within its group of four where it was.
STRIDE_DEVICE uint4 curand4(curandStatePhilox4_32_10* state) {
  uint4 a = state->output;
  __stride::philox_advance(state, 1);
  uint4 b = state->output;
  switch (state->STATE) {
    case 1:
      return uint4{a.y, a.z, a.w, b.x};
    case 2:
      return uint4{a.z, a.w, b.x, b.y};
    case 3:
      return uint4{a.w, b.x, b.y, b.z};
    default:
      return a;
  }
}
STRIDE_DEVICE void skipahead(unsigned long long n, curandStatePhilox4_32_10* state) {
  unsigned at = state->STATE + (unsigned)(n & 3);
  state->STATE = at & 3;
  __stride::philox_advance(state, n / 4 + at / 4);
}
// Sequences are 2^66 numbers apart.
STRIDE_DEVICE void skipahead_sequence(unsigned long long n, curandStatePhilox4_32_10* state) {
  unsigned long long high = (unsigned long long)state->ctr.w << 32 | state->ctr.z;
  high += n;
  state->ctr.z = (unsigned)high;
  state->ctr.w = (unsigned)(high >> 32);
  state->output = __stride::philox(state->ctr, state->key);
}
STRIDE_DEVICE void curand_init(unsigned long long seed, unsigned long long subsequence,
                               unsigned long long offset, curandStatePhilox4_32_10* state) {
  state->ctr = uint4{0, 0, 0, 0};
  state->key = uint2{(unsigned)seed, (unsigned)(seed >> 32)};
  state->STATE = 0;
  __stride::clear_pair(state);
  skipahead_sequence(subsequence, state);
  skipahead(offset, state);
}

STRIDE_DEVICE unsigned curand(curandStateMRG32k3a* state) {
  return (unsigned)((double)__stride::mrg_next(state) * 1.000000048662);
}
STRIDE_DEVICE void skipahead(unsigned long long n, curandStateMRG32k3a* state) {
  using namespace __stride;
  mrg_skip(state->s1, {{{0, 1, 0}, {0, 0, 1}, {kMrg1 - 810728, 1403580, 0}}}, n, kMrg1);
  mrg_skip(state->s2, {{{0, 1, 0}, {0, 0, 1}, {kMrg2 - 1370589, 0, 527612}}}, n, kMrg2);
}
// 2^76 numbers apart: the powers of the matrices above.
STRIDE_DEVICE void skipahead_subsequence(unsigned long long n, curandStateMRG32k3a* state) {
  using namespace __stride;
  mrg_skip(state->s1,
           {{{82758667, 1871391091, 4127413238},
             {3672831523, 69195019, 1871391091},
             {3672091415, 3528743235, 69195019}}},
           n, kMrg1);
  mrg_skip(state->s2,
           {{{1511326704, 3759209742, 1610795712},
             {4292754251, 1511326704, 3889917532},
             {3859662829, 4292754251, 3708466080}}},
           n, kMrg2);
}
// 2^127 numbers apart.
STRIDE_DEVICE void skipahead_sequence(unsigned long long n, curandStateMRG32k3a* state) {
  using namespace __stride;
  mrg_skip(state->s1,
           {{{2427906178, 3580155704, 949770784},
             {226153695, 1230515664, 3580155704},
             {1988835001, 986791581, 1230515664}}},
           n, kMrg1);
  mrg_skip(state->s2,
           {{{1464411153, 277697599, 1610723613},
             {32183930, 1464411153, 1022607788},
             {2824425944, 32183930, 2093834863}}},
           n, kMrg2);
}
STRIDE_DEVICE void curand_init(unsigned long long seed, unsigned long long subsequence,
                               unsigned long long offset, curandStateMRG32k3a* state) {
  using namespace __stride;
  unsigned long long mix[2] = {(unsigned)seed ^ 0x55555555u, (unsigned)(seed >> 32) ^ 0xAAAAAAAAu};
  for (int i = 0; i < 3; ++i) {
    state->s1[i] = (unsigned)(seed == 0 ? 12345 : mix[i % 2] * 12345 % kMrg1);
    state->s2[i] = (unsigned)(seed == 0 ? 12345 : mix[1 - i % 2] * 12345 % kMrg2);
  }
  clear_pair(state);
  skipahead_subsequence(subsequence, state);
  skipahead(offset, state);
}

// Sobol sequences in the order of Gray codes.
#define STRIDE_CURAND_SOBOL(State, Word, Vectors, trailing_ones)                                 \
  STRIDE_DEVICE void skipahead(Word n, State* state) {                                           \
    state->i += n;                                                                               \
    Word gray = state->i ^ state->i >> 1;                                                        \
    state->x = state->c;                                                                         \
    for (int k = 0; k < 8 * (int)sizeof(Word); ++k) {                                            \
      if (gray >> k & 1) state->x ^= state->direction_vectors[k];                                \
    }                                                                                            \
  }                                                                                              \
  STRIDE_DEVICE Word curand(State* state) {                                                      \
    Word result = state->x;                                                                      \
    int bit = (Word)~state->i == 0 ? 8 * (int)sizeof(Word) - 1 : trailing_ones;                  \
    state->x ^= state->direction_vectors[bit];                                                   \
    ++state->i;                                                                                  \
    return result;                                                                               \
  }                                                                                              \
  namespace __stride {                                                                           \
  STRIDE_DEVICE void sobol_init(const Word* vectors, Word scramble, Word offset, State* state) { \
    state->i = 0;                                                                                \
    state->c = scramble;                                                                         \
    for (int k = 0; k < 8 * (int)sizeof(Word); ++k) state->direction_vectors[k] = vectors[k];    \
    skipahead(offset, state);                                                                    \
  }                                                                                              \
  }
STRIDE_CURAND_SOBOL(curandStateSobol32, unsigned, curandDirectionVectors32_t,
                    __builtin_ctz(~state->i))
STRIDE_CURAND_SOBOL(curandStateScrambledSobol32, unsigned, curandDirectionVectors32_t,
                    __builtin_ctz(~state->i))
STRIDE_CURAND_SOBOL(curandStateSobol64, unsigned long long, curandDirectionVectors64_t,
                    __builtin_ctzll(~state->i))
STRIDE_CURAND_SOBOL(curandStateScrambledSobol64, unsigned long long, curandDirectionVectors64_t,
                    __builtin_ctzll(~state->i))
#undef STRIDE_CURAND_SOBOL
STRIDE_DEVICE void curand_init(curandDirectionVectors32_t vectors, unsigned offset,
                               curandStateSobol32* state) {
  __stride::sobol_init(vectors, 0u, offset, state);
}
STRIDE_DEVICE void curand_init(curandDirectionVectors32_t vectors, unsigned scramble,
                               unsigned offset, curandStateScrambledSobol32* state) {
  __stride::sobol_init(vectors, scramble, offset, state);
}
STRIDE_DEVICE void curand_init(curandDirectionVectors64_t vectors, unsigned long long offset,
                               curandStateSobol64* state) {
  __stride::sobol_init(vectors, 0ull, offset, state);
}
STRIDE_DEVICE void curand_init(curandDirectionVectors64_t vectors, unsigned long long scramble,
                               unsigned long long offset, curandStateScrambledSobol64* state) {
  __stride::sobol_init(vectors, scramble, offset, state);
}

// Uniform numbers, above 0 and up to 1.
STRIDE_DEVICE float curand_uniform(curandStateXORWOW* state) {
  return __stride::uniform_of(curand(state));
}
STRIDE_DEVICE double curand_uniform_double(curandStateXORWOW* state) {
  unsigned x = curand(state), y = curand(state);
  return __stride::uniform_double_of(x, y);
}
STRIDE_DEVICE float curand_uniform(curandStatePhilox4_32_10* state) {
  return __stride::uniform_of(curand(state));
}
STRIDE_DEVICE double curand_uniform_double(curandStatePhilox4_32_10* state) {
  return curand(state) * 0x1p-32 + 0x1p-32;
}
STRIDE_DEVICE float4 curand_uniform4(curandStatePhilox4_32_10* state) {
  using __stride::uniform_of;
  uint4 x = curand4(state);
  return float4{uniform_of(x.x), uniform_of(x.y), uniform_of(x.z), uniform_of(x.w)};
}
STRIDE_DEVICE double2 curand_uniform2_double(curandStatePhilox4_32_10* state) {
  uint4 x = curand4(state);
  return double2{__stride::uniform_double_of(x.x, x.y), __stride::uniform_double_of(x.z, x.w)};
}
STRIDE_DEVICE double4 curand_uniform4_double(curandStatePhilox4_32_10* state) {
  double2 a = curand_uniform2_double(state), b = curand_uniform2_double(state);
  return double4{a.x, a.y, b.x, b.y};
}
STRIDE_DEVICE double curand_uniform_double(curandStateMRG32k3a* state) {
  return __stride::mrg_next(state) * 2.3283065498378288e-10;
}
STRIDE_DEVICE float curand_uniform(curandStateMRG32k3a* state) {
  return (float)curand_uniform_double(state);
}
// A Sobol state gives one number at a time, so normal numbers come by the inverse.
#define STRIDE_CURAND_SOBOL(State, top, uniform_double)                                        \
  STRIDE_DEVICE float curand_uniform(State* state) {                                           \
    auto x = curand(state);                                                                    \
    return __stride::uniform_of(top);                                                          \
  }                                                                                            \
  STRIDE_DEVICE double curand_uniform_double(State* state) {                                   \
    auto x = curand(state);                                                                    \
    return uniform_double;                                                                     \
  }                                                                                            \
  STRIDE_DEVICE float curand_normal(State* state) {                                            \
    auto x = curand(state);                                                                    \
    return __stride::normal_inverse(top);                                                      \
  }                                                                                            \
  STRIDE_DEVICE double curand_normal_double(State* state) {                                    \
    return __stride::normal_inverse_double(curand(state));                                     \
  }                                                                                            \
  STRIDE_DEVICE float curand_log_normal(State* state, float mean, float deviation) {           \
    return expf(mean + deviation * curand_normal(state));                                      \
  }                                                                                            \
  STRIDE_DEVICE double curand_log_normal_double(State* state, double mean, double deviation) { \
    return exp(mean + deviation * curand_normal_double(state));                                \
  }
STRIDE_CURAND_SOBOL(curandStateSobol32, x, x * 0x1p-32 + 0x1p-32)
STRIDE_CURAND_SOBOL(curandStateScrambledSobol32, x, x * 0x1p-32 + 0x1p-32)
STRIDE_CURAND_SOBOL(curandStateSobol64, (unsigned)(x >> 32), (x >> 11) * 0x1p-53 + 0x1p-54)
STRIDE_CURAND_SOBOL(curandStateScrambledSobol64, (unsigned)(x >> 32), (x >> 11) * 0x1p-53 + 0x1p-54)
#undef STRIDE_CURAND_SOBOL

// Normal numbers in pairs.
STRIDE_DEVICE float2 curand_normal2(curandStateXORWOW* state) {
  unsigned x = curand(state), y = curand(state);
  return __stride::normal_pair(x, y);
}
STRIDE_DEVICE double2 curand_normal2_double(curandStateXORWOW* state) {
  uint4 x;
  x.x = curand(state), x.y = curand(state), x.z = curand(state), x.w = curand(state);
  return __stride::normal_pair_double(x);
}
STRIDE_DEVICE float2 curand_normal2(curandStatePhilox4_32_10* state) {
  unsigned x = curand(state), y = curand(state);
  return __stride::normal_pair(x, y);
}
STRIDE_DEVICE double2 curand_normal2_double(curandStatePhilox4_32_10* state) {
  return __stride::normal_pair_double(curand4(state));
}
STRIDE_DEVICE float4 curand_normal4(curandStatePhilox4_32_10* state) {
  uint4 x = curand4(state);
  float2 a = __stride::normal_pair(x.x, x.y), b = __stride::normal_pair(x.z, x.w);
  return float4{a.x, a.y, b.x, b.y};
}
STRIDE_DEVICE double4 curand_normal4_double(curandStatePhilox4_32_10* state) {
  double2 a = curand_normal2_double(state), b = curand_normal2_double(state);
  return double4{a.x, a.y, b.x, b.y};
}
STRIDE_DEVICE float2 curand_normal2(curandStateMRG32k3a* state) {
  float u = curand_uniform(state), angle = curand_uniform(state) * 6.2831855f, s, c;
  float radius = sqrtf(-2.0f * logf(u));
  __sincosf(angle, &s, &c);
  return float2{s * radius, c * radius};
}
STRIDE_DEVICE double2 curand_normal2_double(curandStateMRG32k3a* state) {
  double u = curand_uniform_double(state), half_turns = 2 * curand_uniform_double(state);
  return __stride::normal_pair_of(u, half_turns);
}
// One number of each pair; a log-normal one does not follow a normal one, nor the other way round.
#define STRIDE_CURAND_ONE(State)                                                                 \
  STRIDE_DEVICE float curand_normal(State* state) {                                              \
    bool kept = state->boxmuller_flag == 1;                                                      \
    state->boxmuller_flag = !kept;                                                               \
    if (kept) return state->boxmuller_extra;                                                     \
    float2 pair = curand_normal2(state);                                                         \
    state->boxmuller_extra = pair.y;                                                             \
    return pair.x;                                                                               \
  }                                                                                              \
  STRIDE_DEVICE double curand_normal_double(State* state) {                                      \
    bool kept = state->boxmuller_flag_double == 1;                                               \
    state->boxmuller_flag_double = !kept;                                                        \
    if (kept) return state->boxmuller_extra_double;                                              \
    double2 pair = curand_normal2_double(state);                                                 \
    state->boxmuller_extra_double = pair.y;                                                      \
    return pair.x;                                                                               \
  }                                                                                              \
  STRIDE_DEVICE float2 curand_log_normal2(State* state, float mean, float deviation) {           \
    float2 pair = curand_normal2(state);                                                         \
    return float2{expf(mean + deviation * pair.x), expf(mean + deviation * pair.y)};             \
  }                                                                                              \
  STRIDE_DEVICE double2 curand_log_normal2_double(State* state, double mean, double deviation) { \
    double2 pair = curand_normal2_double(state);                                                 \
    return double2{exp(mean + deviation * pair.x), exp(mean + deviation * pair.y)};              \
  }                                                                                              \
  STRIDE_DEVICE float curand_log_normal(State* state, float mean, float deviation) {             \
    bool kept = state->boxmuller_flag == 2;                                                      \
    state->boxmuller_flag = kept ? 0 : 2;                                                        \
    if (kept) return state->boxmuller_extra;                                                     \
    float2 pair = curand_log_normal2(state, mean, deviation);                                    \
    state->boxmuller_extra = pair.y;                                                             \
    return pair.x;                                                                               \
  }                                                                                              \
  STRIDE_DEVICE double curand_log_normal_double(State* state, double mean, double deviation) {   \
    bool kept = state->boxmuller_flag_double == 2;                                               \
    state->boxmuller_flag_double = kept ? 0 : 2;                                                 \
    if (kept) return state->boxmuller_extra_double;                                              \
    double2 pair = curand_log_normal2_double(state, mean, deviation);                            \
    state->boxmuller_extra_double = pair.y;                                                      \
    return pair.x;                                                                               \
  }
STRIDE_CURAND_ONE(curandStateXORWOW)
STRIDE_CURAND_ONE(curandStatePhilox4_32_10)
STRIDE_CURAND_ONE(curandStateMRG32k3a)
#undef STRIDE_CURAND_ONE
STRIDE_DEVICE float4 curand_log_normal4(curandStatePhilox4_32_10* state, float mean,
                                        float deviation) {
  float4 x = curand_normal4(state);
  return float4{expf(mean + deviation * x.x), expf(mean + deviation * x.y),
                expf(mean + deviation * x.z), expf(mean + deviation * x.w)};
}
STRIDE_DEVICE double4 curand_log_normal4_double(curandStatePhilox4_32_10* state, double mean,
                                                double deviation) {
  double4 x = curand_normal4_double(state);
  return double4{exp(mean + deviation * x.x), exp(mean + deviation * x.y),
                 exp(mean + deviation * x.z), exp(mean + deviation * x.w)};
}

// Poisson numbers.
namespace __stride {
// Knuth's product of uniform numbers.
template <class State>
STRIDE_DEVICE unsigned poisson_product(State* state, float mean) {
  float product = expf(mean);
  unsigned count = 0;
  do {
    ++count;
    product *= curand_uniform(state);
  } while (product > 1.0f);
  return count - 1;
}
STRIDE_DEVICE unsigned poisson_of_normal(double normal, double mean) {
  return (unsigned)(sqrt(mean) * normal + mean + 0.5);
}
// Hormann's transformed rejection with a squeeze (PTRS).
template <class State>
STRIDE_DEVICE unsigned poisson_rejection(State* state, double mean) {
  double b = 0.931 + 2.53 * sqrt(mean), a = -0.059 + 0.02483 * b;
  double inverse_alpha = 1.1239 + 1.1328 / (b - 3.4), limit = 0.9277 - 3.6224 / (b - 2);
  for (;;) {
    double u = curand_uniform_double(state) - 0.5, v = curand_uniform_double(state);
    double us = 0.5 - fabs(u), k = floor((2 * a / us + b) * u + mean + 0.43);
    if (us >= 0.07 && v <= limit) return (unsigned)k;
    if (k < 0 || (us < 0.013 && v > us)) continue;
    if (log(v * inverse_alpha / (a / (us * us) + b)) <= -mean + k * log(mean) - lgamma(k + 1))
      return (unsigned)k;
  }
}
template <class State>
STRIDE_DEVICE unsigned poisson(State* state, double mean) {
  if (mean < 64) return poisson_product(state, (float)mean);
  if (mean > 4000) return poisson_of_normal(curand_normal_double(state), mean);
  return poisson_rejection(state, mean);
}
// By the inverse: one number of the sequence for one result.
STRIDE_DEVICE unsigned poisson_inverse(double u, double normal, double mean) {
  if (mean >= 1000) return poisson_of_normal(normal, mean);
  double term = 1, sum = 1;
  unsigned count = 0;
  // exp(-mean) in factors that do not vanish.
  for (double done = 0; done < mean; done += 500) {
    double factor = exp(-(mean - done > 500 ? 500 : mean - done));
    term *= factor;
    sum *= factor;
    while (u > sum && term > 0) {
      ++count;
      term *= mean / count;
      sum += term;
    }
  }
  return count;
}
}  // namespace __stride
STRIDE_DEVICE unsigned curand_poisson(curandStateXORWOW* state, double mean) {
  return __stride::poisson(state, mean);
}
STRIDE_DEVICE unsigned curand_poisson(curandStatePhilox4_32_10* state, double mean) {
  return __stride::poisson(state, mean);
}
STRIDE_DEVICE unsigned curand_poisson(curandStateMRG32k3a* state, double mean) {
  return __stride::poisson(state, mean);
}
STRIDE_DEVICE uint4 curand_poisson4(curandStatePhilox4_32_10* state, double mean) {
  if (mean > 4000) {
    using __stride::poisson_of_normal;
    double4 x = curand_normal4_double(state);
    return uint4{poisson_of_normal(x.x, mean), poisson_of_normal(x.y, mean),
                 poisson_of_normal(x.z, mean), poisson_of_normal(x.w, mean)};
  }
  uint4 result;
  result.x = __stride::poisson(state, mean);
  result.y = __stride::poisson(state, mean);
  result.z = __stride::poisson(state, mean);
  result.w = __stride::poisson(state, mean);
  return result;
}
STRIDE_DEVICE unsigned curand_poisson(curandStateSobol32* state, double mean) {
  unsigned x = curand(state);
  return __stride::poisson_inverse(x * 0x1p-32 + 0x1p-33, __stride::normal_inverse_double(x), mean);
}
STRIDE_DEVICE unsigned curand_poisson(curandStateScrambledSobol32* state, double mean) {
  unsigned x = curand(state);
  return __stride::poisson_inverse(x * 0x1p-32 + 0x1p-33, __stride::normal_inverse_double(x), mean);
}
STRIDE_DEVICE unsigned curand_poisson(curandStateSobol64* state, double mean) {
  unsigned long long x = curand(state);
  return __stride::poisson_inverse((x >> 11) * 0x1p-53 + 0x1p-55,
                                   __stride::normal_inverse_double(x), mean);
}
STRIDE_DEVICE unsigned curand_poisson(curandStateScrambledSobol64* state, double mean) {
  unsigned long long x = curand(state);
  return __stride::poisson_inverse((x >> 11) * 0x1p-53 + 0x1p-55,
                                   __stride::normal_inverse_double(x), mean);
}
