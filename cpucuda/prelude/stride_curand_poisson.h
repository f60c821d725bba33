// Poisson numbers of cuRAND's states.
#pragma once

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
