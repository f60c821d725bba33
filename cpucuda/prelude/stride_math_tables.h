// Polynomials of the math functions, fitted over Chebyshev points in 90 digits, lowest term last.
#pragma once

#include "stride_base.h"

namespace __stride {

STRIDE_DEVICE float fused(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
STRIDE_DEVICE double fused(double a, double b, double c) { return __builtin_fma(a, b, c); }

// sin(x) = x + x*z*P(z), cos(x) = 1 - z/2 + z*z*P(z), z = x*x, |x| <= pi/4.
STRIDE_DEVICE double sine_tail(double z) {
  return fused(fused(fused(fused(fused(fused(-0x1.ab161790d481ep-41, z, 0x1.61217c18c5ad8p-33), z,
                                       -0x1.ae64540f0c1bcp-26),
                                 z, 0x1.71de3a545e704p-19),
                           z, -0x1.a01a01a019926p-13),
                     z, 0x1.1111111111110p-7),
               z, -0x1.5555555555555p-3);
}
STRIDE_DEVICE float sine_tail(float z) {
  return fused(fused(-0x1.9ac6fcp-13f, z, 0x1.110c24p-7f), z, -0x1.555552p-3f);
}
STRIDE_DEVICE double cosine_tail(double z) {
  return fused(fused(fused(fused(fused(fused(0x1.ab76cfa136b4ap-45, z, -0x1.9394b76d752bfp-37), z,
                                       0x1.1eed8de9efaa4p-29),
                                 z, -0x1.27e4fb7711e1fp-22),
                           z, 0x1.a01a01a019d02p-16),
                     z, -0x1.6c16c16c16c16p-10),
               z, 0x1.5555555555555p-5);
}
STRIDE_DEVICE float cosine_tail(float z) {
  return fused(fused(0x1.9bd67p-16f, z, -0x1.6c12cep-10f), z, 0x1.555554p-5f);
}
// atan(t) = t + t*z*P(z), z = t*t, |t| <= 1/2.
STRIDE_DEVICE double arc_tail(double z) {
  double p = fused(0x1.6d755fc1636f4p-7, z, -0x1.da5fdeb30e33ep-6);
  p = fused(p, z, 0x1.5ee9281016ed2p-5);
  p = fused(p, z, -0x1.a680f4658c711p-5);
  p = fused(p, z, 0x1.e0955a999ace7p-5);
  p = fused(p, z, -0x1.110025075dddcp-4);
  p = fused(p, z, 0x1.3b128bfd32fbbp-4);
  p = fused(p, z, -0x1.745d0a99d91e0p-4);
  p = fused(p, z, 0x1.c71c7173fae64p-4);
  p = fused(p, z, -0x1.2492492404d83p-3);
  p = fused(p, z, 0x1.9999999998dc7p-3);
  return fused(p, z, -0x1.5555555555554p-2);
}
// The same for |t| <= 1, and arcsin(t) = t + t*z*P(z), |t| <= 1/2. These and those of log1p_tail,
// exp2_small and log2_ratio have the least greatest relative error, by Lawson's iteration.
STRIDE_DEVICE float short_arc_tail(float z) {
  float p = fused(-0x1.d62ff4p-10f, z, 0x1.65a66p-7f);
  p = fused(p, z, -0x1.fed162p-6f);
  p = fused(p, z, 0x1.dac9e6p-5f);
  p = fused(p, z, -0x1.583492p-4f);
  p = fused(p, z, 0x1.c099fep-4f);
  p = fused(p, z, -0x1.2421b6p-3f);
  p = fused(p, z, 0x1.9991fep-3f);
  return fused(p, z, -0x1.55553ep-2f);
}
STRIDE_DEVICE float arcsine_tail(float z) {
  float p = fused(0x1.3355c2p-5f, z, 0x1.d91fa4p-7f);
  p = fused(p, z, 0x1.0491a2p-5f);
  p = fused(p, z, 0x1.6caed2p-5f);
  p = fused(p, z, 0x1.33387cp-4f);
  return fused(p, z, 0x1.55554cp-3f);
}
STRIDE_DEVICE double arcsine_tail(double z) {
  double p = fused(0x1.d72b2bc8155f8p-6, z, -0x1.e6aaa8a0a04ccp-7);
  p = fused(p, z, 0x1.1d189408314eep-6);
  p = fused(p, z, 0x1.65a9c4dfcf8b2p-8);
  p = fused(p, z, 0x1.52420b04b37bep-7);
  p = fused(p, z, 0x1.782651caa6547p-7);
  p = fused(p, z, 0x1.c9cf07674736ap-7);
  p = fused(p, z, 0x1.1c4d35cf95421p-6);
  p = fused(p, z, 0x1.6e8bb1c8209a2p-6);
  p = fused(p, z, 0x1.f1c71c1db0623p-6);
  p = fused(p, z, 0x1.6db6db6e31f13p-5);
  p = fused(p, z, 0x1.3333333332ecap-4);
  return fused(p, z, 0x1.5555555555556p-3);
}
// log(1 + f) = f - f*f/2 + f*f*f*P(f), 1 + f in [sqrt(1/2), sqrt(2)].
STRIDE_DEVICE float log1p_tail(float f) {
  float p = fused(-0x1.38b582p-4f, f, 0x1.055b6cp-3f);
  p = fused(p, f, -0x1.0d8542p-3f);
  p = fused(p, f, 0x1.22da1cp-3f);
  p = fused(p, f, -0x1.547244p-3f);
  p = fused(p, f, 0x1.99a008p-3f);
  p = fused(p, f, -0x1.000226p-2f);
  return fused(p, f, 0x1.555554p-2f);
}
// log2(1 + f) = f*P(f) to 2^-33 of it, for the same f.
STRIDE_DEVICE double log2_ratio(double f) {
  double p = fused(-0x1.61ac547094a81p-4, f, 0x1.3d25f13504565p-3);
  p = fused(p, f, -0x1.417fea84e1a1fp-3);
  p = fused(p, f, 0x1.45a293db5b053p-3);
  p = fused(p, f, -0x1.6eb02b2cc09b8p-3);
  p = fused(p, f, 0x1.a615cb3f97481p-3);
  p = fused(p, f, -0x1.ec8d73d2819adp-3);
  p = fused(p, f, 0x1.277732ceb938fp-2);
  p = fused(p, f, -0x1.715435eba1cbfp-2);
  p = fused(p, f, 0x1.ec709c00ef5bap-2);
  p = fused(p, f, -0x1.7154767baeba6p-1);
  return fused(p, f, 0x1.71547652ef956p+0);
}
// 2^f, |f| <= 1/2.
STRIDE_DEVICE float exp2_small(float f) {
  float p = fused(0x1.448fc2p-13f, f, 0x1.5f47aap-10f);
  p = fused(p, f, 0x1.3b29aap-7f);
  p = fused(p, f, 0x1.c6aedp-5f);
  p = fused(p, f, 0x1.ebfbep-3f);
  p = fused(p, f, 0x1.62e43p-1f);
  return fused(p, f, 1.0f);
}
// 2*atanh(s) = 2*s + s*z*P(z), z = s*s, |s| <= 3 - 2*sqrt(2).
STRIDE_DEVICE double log_tail(double z) {
  return fused(fused(fused(fused(fused(fused(fused(0x1.0c0aff044a970p-3, z, 0x1.0fbde0f4ad17bp-3),
                                             z, 0x1.3b1c3c1c81c8fp-3),
                                       z, 0x1.745cf8e4bba1bp-3),
                                 z, 0x1.c71c7201a55d7p-3),
                           z, 0x1.2492492476a1ap-2),
                     z, 0x1.9999999999a39p-2),
               z, 0x1.5555555555555p-1);
}
// The same without its first term: P(z) = 2/3 + z*Q(z).
STRIDE_DEVICE double log_tail_rest(double z) {
  return fused(
      fused(fused(fused(fused(fused(fused(fused(0x1.b8e0c07ef591ap-4, z, 0x1.ac4927065cf5ap-4), z,
                                          0x1.e1f80a4c22cd4p-4),
                                    z, 0x1.1110df7e2b9b8p-3),
                              z, 0x1.3b13b1bd0ead0p-3),
                        z, 0x1.745d1745124c7p-3),
                  z, 0x1.c71c71c71cfe7p-3),
            z, 0x1.2492492492491p-2),
      z, 0x1.999999999999ap-2);
}
// exp(r) = 1 + r + r*r*P(r), |r| <= ln(2)/2.
STRIDE_DEVICE double exp_tail(double z) {
  double p = fused(0x1.af389ecfc4b9cp-26, z, 0x1.28917c89a43a7p-22);
  p = fused(p, z, 0x1.71de0db2f6b19p-19);
  p = fused(p, z, 0x1.a019b9149a41cp-16);
  p = fused(p, z, 0x1.a01a01a7c2efep-13);
  p = fused(p, z, 0x1.6c16c17889ef1p-10);
  p = fused(p, z, 0x1.11111111109b5p-7);
  p = fused(p, z, 0x1.5555555553d68p-5);
  p = fused(p, z, 0x1.5555555555556p-3);
  return fused(p, z, 0x1.0000000000001p-1);
}
STRIDE_DEVICE float exp_tail(float z) {
  return fused(
      fused(fused(fused(0x1.6d117cp-10f, z, 0x1.120be2p-7f), z, 0x1.555518p-5f), z, 0x1.5554dcp-3f),
      z, 0x1.p-1f);
}

}  // namespace __stride
