// Counter-based random words and distributions, by integers and IEEE's basic operations only, so
// that all devices give the same bits. Words are processed in pairs, the first in the lower half.
// The generators are those of Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as
// 1, 2, 3" (2011).

struct st_block {
  st_u32 w0, w1, w2, w3;
};
struct st_product {
  st_u32 low, high;
};
#if ST_CUDA
// NVRTC would multiply 64 bits by 64 for a wide product in C.
ST_FN st_product st_multiply_wide(st_u32 a, st_u32 b) { return st_product{a * b, __umulhi(a, b)}; }
#else
ST_FN st_product st_multiply_wide(st_u32 a, st_u32 b) {
  const st_u64 product = (st_u64)a * b;
  return st_product{(st_u32)product, (st_u32)(product >> 32)};
}
#endif
ST_FN st_block st_random_philox_block(st_u64 key, st_u64 low, st_u64 high) {
  st_u32 k0 = (st_u32)key, k1 = (st_u32)(key >> 32);
  st_block c = {(st_u32)low, (st_u32)(low >> 32), (st_u32)high, (st_u32)(high >> 32)};
#pragma unroll
  for (int round = 0; round < 10; ++round) {
    const st_product a = st_multiply_wide(c.w0, 0xD2511F53u);
    const st_product b = st_multiply_wide(c.w2, 0xCD9E8D57u);
    c = st_block{b.high ^ c.w1 ^ k0, b.low, a.high ^ c.w3 ^ k1, a.low};
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return c;
}
ST_FN st_u64 st_random_philox_low(st_u64 key, st_u64 low, st_u64 high) {
  const st_block block = st_random_philox_block(key, low, high);
  return (st_u64)block.w1 << 32 | block.w0;
}
ST_FN st_u64 st_random_philox_high(st_u64 key, st_u64 low, st_u64 high) {
  const st_block block = st_random_philox_block(key, low, high);
  return (st_u64)block.w3 << 32 | block.w2;
}

// A generator's block has several words. An element's block and word are functions of its index
// with literal constants, so that a compiler sees which neighbouring elements share a block and
// computes it once.
ST_FN st_u64 st_random_half(st_u64 number) { return number >> 1; }
ST_FN st_u64 st_random_odd(st_u64 number) { return number & 1; }
// Word `number` of a sequence; `pair` has two words, the even one in the lower half.
ST_FN st_u64 st_random_word(st_u64 pair, st_u64 number) {
  return (number & 1) != 0 ? pair >> 32 : pair & 0xFFFFFFFFu;
}

ST_FN st_u64 st_random_threefry(st_u64 key, st_u64 counter) {
  const st_u32 k0 = (st_u32)key, k1 = (st_u32)(key >> 32), k2 = 0x1BD11BDAu ^ k0 ^ k1;
  const st_u32 keys[3] = {k0, k1, k2};
  const int rotations[8] = {13, 15, 26, 6, 17, 29, 16, 24};
  st_u32 x0 = (st_u32)counter + k0, x1 = (st_u32)(counter >> 32) + k1;
#pragma unroll
  for (int round = 0; round < 20; ++round) {
    const int rotation = rotations[round % 8];
    x0 += x1;
    x1 = (x1 << rotation | x1 >> (32 - rotation)) ^ x0;
    if (round % 4 == 3) {
      const int step = round / 4 + 1;
      x0 += keys[step % 3];
      x1 += keys[(step + 1) % 3] + (st_u32)step;
    }
  }
  return (st_u64)x1 << 32 | x0;
}

// The upper half of the product: words / 2^64 * range, rounded down.
ST_FN st_u64 st_random_below(st_u64 words, st_u64 range) {
  const st_u64 a0 = words & 0xFFFFFFFFull, a1 = words >> 32, b0 = range & 0xFFFFFFFFull,
               b1 = range >> 32;
  const st_u64 middle = a1 * b0 + (a0 * b0 >> 32);
  const st_u64 other = a0 * b1 + (middle & 0xFFFFFFFFull);
  return a1 * b1 + (middle >> 32) + (other >> 32);
}

// The natural logarithm of a normal number, from the series of 2 artanh((m - 1) / (m + 1)) for m
// from sqrt(1/2) to sqrt(2).
ST_FN double st_random_log(double x) {
  const st_u64 bits = st_bits(x);
  int exponent = (int)(bits >> 52) - 1022;
  double m = st_double_of((bits & 0x000FFFFFFFFFFFFFull) | 0x3FE0000000000000ull);
  if (m < 0.70710678118654752440) {
    m = m * 2;
    exponent -= 1;
  }
  const double f = (m - 1) / (m + 1), s = f * f;
  double sum = 1.0 / 23;
#pragma unroll
  for (int k = 21; k > 0; k -= 2) sum = sum * s + 1.0 / k;
  return exponent * 0.69314718055994530942 + 2 * f * sum;
}

// The normal distribution's quantile at u, inside (0, 1): Wichura's PPND16, algorithm AS 241
// (1988), exact to about 1e-16.
ST_FN double st_random_normal(double u) {
  const double q = u - 0.5;
  if (q >= -0.425 && q <= 0.425) {
    const double r = 0.180625 - q * q;
    const double above = ((((((2.5090809287301226727e+3 * r + 3.3430575583588128105e+4) * r +
                              6.7265770927008700853e+4) *
                                 r +
                             4.5921953931549871457e+4) *
                                r +
                            1.3731693765509461125e+4) *
                               r +
                           1.9715909503065514427e+3) *
                              r +
                          1.3314166789178437745e+2) *
                             r +
                         3.3871328727963666080e+0;
    const double below = ((((((5.2264952788528545610e+3 * r + 2.8729085735721942674e+4) * r +
                              3.9307895800092710610e+4) *
                                 r +
                             2.1213794301586595867e+4) *
                                r +
                            5.3941960214247511077e+3) *
                               r +
                           6.8718700749205790830e+2) *
                              r +
                          4.2313330701600911252e+1) *
                             r +
                         1.0;
    return q * above / below;
  }
  double r = st_sqrt(-st_random_log(q < 0 ? u : 1 - u)), above, below;
  if (r <= 5) {
    r = r - 1.6;
    above = ((((((7.74545014278341407640e-4 * r + 2.27238449892691845833e-2) * r +
                 2.41780725177450611770e-1) *
                    r +
                1.27045825245236838258e+0) *
                   r +
               3.64784832476320460504e+0) *
                  r +
              5.76949722146069140550e+0) *
                 r +
             4.63033784615654529590e+0) *
                r +
            1.42343711074968357734e+0;
    below = ((((((1.05075007164441684324e-9 * r + 5.47593808499534494600e-4) * r +
                 1.51986665636164571966e-2) *
                    r +
                1.48103976427480074590e-1) *
                   r +
               6.89767334985100004550e-1) *
                  r +
              1.67638483018380384940e+0) *
                 r +
             2.05319162663775882187e+0) *
                r +
            1.0;
  } else {
    r = r - 5;
    above = ((((((2.01033439929228813265e-7 * r + 2.71155556874348757815e-5) * r +
                 1.24266094738807843860e-3) *
                    r +
                2.65321895265761230930e-2) *
                   r +
               2.96560571828504891230e-1) *
                  r +
              1.78482653991729133580e+0) *
                 r +
             5.46378491116411436990e+0) *
                r +
            6.65790464350110377720e+0;
    below = ((((((2.04426310338993978564e-15 * r + 1.42151175831644588870e-7) * r +
                 1.84631831751005468180e-5) *
                    r +
                7.86869131145613259100e-4) *
                   r +
               1.48753612908506148525e-2) *
                  r +
              1.36929880922735805310e-1) *
                 r +
             5.99832206555887937690e-1) *
                r +
            1.0;
  }
  const double z = above / below;
  return q < 0 ? -z : z;
}

// As above, in float.
ST_FN float st_random_log(float x) {
  const st_u32 bits = st_bits(x);
  int exponent = (int)(bits >> 23) - 126;
  float m = st_float_of((bits & 0x007FFFFFu) | 0x3F000000u);
  if (m < 0.70710678f) {
    m = m * 2;
    exponent -= 1;
  }
  const float f = (m - 1) / (m + 1), s = f * f, twice = 2 * f;
  const float rest = (((1.0f / 9 * s + 1.0f / 7) * s + 1.0f / 5) * s + 1.0f / 3) * s;
  return exponent * 0.69314718f + (twice + twice * rest);
}

// The quantile at the middle of one of 2^32 equal parts of (0, 1): Wichura's PPND7 of the same
// paper, within 1e-6 of itself. Its last case, below 1.4e-11, does not occur. Both other cases are
// computed, since neighbouring elements, of which some thread or lane has either, need them.
ST_FN float st_random_normal(st_u32 word) {
  const int part = (int)(word ^ 0x80000000u);
  const float q = ((float)part + 0.5f) * 0x1p-32f;
  const bool central = q >= -0.425f && q <= 0.425f;
  const float tail = ((float)(part < 0 ? word : ~word) + 0.5f) * 0x1p-32f;
  const float c = 0.180625f - q * q, t = st_sqrt(-st_random_log(tail)) - 1.6f;
  const float central_above =
      ((5.9109374720e+1f * c + 1.5929113202e+2f) * c + 5.0434271938e+1f) * c + 3.3871327179e+0f;
  const float central_below =
      ((6.7187563600e+1f * c + 7.8757757664e+1f) * c + 1.7895169469e+1f) * c + 1.0f;
  const float tail_above =
      ((1.7023821103e-1f * t + 1.3067284816e+0f) * t + 2.7568153900e+0f) * t + 1.4234372777e+0f;
  const float tail_below = (1.2021132975e-1f * t + 7.3700164250e-1f) * t + 1.0f;
  const float above = central ? q * central_above : part < 0 ? -tail_above : tail_above;
  return above / (central ? central_below : tail_below);
}
