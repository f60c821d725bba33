// Sines, cosines and tangents of arguments of few turns, which need no table to reduce: products
// with the parts of pi/2 are subtracted by fused operations (Cody and Waite). Generated loops use
// these; larger arguments, infinities and NaN take the functions for any argument.
#pragma once

#include "stride_math.h"

#define STRIDE_FEW_TURNS

namespace __stride {

STRIDE_DEVICE bool of_few_turns(float x) { return absolute(x) < 0x1p30f; }
STRIDE_DEVICE bool of_few_turns(double x) { return absolute(x) < 0x1p30; }

// x less the nearest multiple of pi/2, whose number has its last bits in `quadrant`.
STRIDE_DEVICE float rest_of_turn(float x, uint32_t& quadrant) {
  double wide = x, sum = fused(wide, 0x1.45f306dc9c883p-1, kRoundDouble), n = sum - kRoundDouble;
  quadrant = (uint32_t)bits(sum);
  double r = fused(-n, 0x1.921fb54442d18p+0, wide);
  return (float)fused(-n, 0x1.1a62633145c07p-54, r);
}
STRIDE_DEVICE double rest_of_turn(double x, double& low, uint32_t& quadrant) {
  double sum = fused(x, 0x1.45f306dc9c883p-1, kRoundDouble), n = sum - kRoundDouble;
  quadrant = (uint32_t)bits(sum);
  double first = fused(-n, 0x1.921fb54442d18p+0, x);
  double second = n * 0x1.1a62633145c07p-54, high = first - second;
  low = ((first - high) - second) - fused(n, 0x1.1a62633145c07p-54, -second);
  low = fused(n, 0x1.f1976b7ed8fbcp-110, low);
  return high;
}

// One polynomial with the coefficients of the sine or, in odd quadrants, the cosine.
STRIDE_DEVICE float sine_in_quadrant(float r, uint32_t quadrant) {
  bool odd = (quadrant & 1) != 0;
  float z = r * r, base = odd ? 1.0f : r;
  float p = odd ? 0x1.9bd67p-16f : 0.0f;
  p = fused(p, z, odd ? -0x1.6c12cep-10f : -0x1.9ac6fcp-13f);
  p = fused(p, z, odd ? 0x1.555554p-5f : 0x1.110c24p-7f);
  p = fused(p, z, odd ? -0.5f : -0x1.555552p-3f);
  return from_bits(bits(fused(base, p * z, base)) ^ (quadrant & 2) << 30);
}
STRIDE_DEVICE float sin_of_few(float x) {
  uint32_t quadrant;
  float r = rest_of_turn(x, quadrant);
  float sine = sine_in_quadrant(r, quadrant);
  return x == 0 ? x : sine;
}
STRIDE_DEVICE float cos_of_few(float x) {
  uint32_t quadrant;
  float r = rest_of_turn(x, quadrant);
  return sine_in_quadrant(r, quadrant + 1);
}
STRIDE_DEVICE float tan_of_few(float x) {
  uint32_t quadrant;
  float r = rest_of_turn(x, quadrant);
  bool odd = (quadrant & 1) != 0;
  float s = sine_of(r), c = cosine_of(r);
  float result = (odd ? -c : s) / (odd ? s : c);
  return x == 0 ? x : result;
}
STRIDE_DEVICE double sin_of_few(double x) {
  uint32_t quadrant;
  double low, high = rest_of_turn(x, low, quadrant);
  double result = choose(sine_of(high, low), cosine_of(high, low), quadrant);
  return absolute(x) < 0x1p-27 ? x : result;
}
STRIDE_DEVICE double cos_of_few(double x) {
  uint32_t quadrant;
  double low, high = rest_of_turn(x, low, quadrant);
  return choose(sine_of(high, low), cosine_of(high, low), quadrant + 1);
}
STRIDE_DEVICE double tan_of_few(double x) {
  uint32_t quadrant;
  double low, high = rest_of_turn(x, low, quadrant);
  double result = tangent_of(high, low, (quadrant & 1) != 0);
  return absolute(x) < 0x1p-27 ? x : result;
}

// For any argument, with the bits of the above where there are few turns.
template <class T>
STRIDE_DEVICE T sin_of_any(T x) {
  return of_few_turns(x) ? sin_of_few(x) : sin_(x);
}
template <class T>
STRIDE_DEVICE T cos_of_any(T x) {
  return of_few_turns(x) ? cos_of_few(x) : cos_(x);
}
template <class T>
STRIDE_DEVICE T tan_of_any(T x) {
  return of_few_turns(x) ? tan_of_few(x) : tan_(x);
}

}  // namespace __stride
