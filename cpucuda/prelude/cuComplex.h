// CUDA's complex numbers for C: structs float2 and double2 with functions.
#pragma once

typedef float2 cuFloatComplex;
typedef float2 cuComplex;
typedef double2 cuDoubleComplex;

// `f` ends the names of one precision. A quotient is scaled, so that no square overflows.
#define STRIDE_CU_COMPLEX(f, C, T, cu)                                                            \
  STRIDE_DEVICE C make_##cu##Complex(T x, T y) { return C{x, y}; }                                \
  STRIDE_DEVICE T cuCreal##f(C z) { return z.x; }                                                 \
  STRIDE_DEVICE T cuCimag##f(C z) { return z.y; }                                                 \
  STRIDE_DEVICE C cuConj##f(C z) { return C{z.x, -z.y}; }                                         \
  STRIDE_DEVICE C cuCadd##f(C a, C b) { return C{a.x + b.x, a.y + b.y}; }                         \
  STRIDE_DEVICE C cuCsub##f(C a, C b) { return C{a.x - b.x, a.y - b.y}; }                         \
  STRIDE_DEVICE C cuCmul##f(C a, C b) { return C{a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x}; } \
  STRIDE_DEVICE C cuCdiv##f(C a, C b) {                                                           \
    T scale = 1 / ((T)fabs(b.x) + (T)fabs(b.y));                                                  \
    T ax = a.x * scale, ay = a.y * scale, bx = b.x * scale, by = b.y * scale;                     \
    T inverse = 1 / (bx * bx + by * by);                                                          \
    return C{(ax * bx + ay * by) * inverse, (ay * bx - ax * by) * inverse};                       \
  }                                                                                               \
  STRIDE_DEVICE T cuCabs##f(C z) { return hypot(z.x, z.y); }                                      \
  STRIDE_DEVICE C cuCfma##f(C a, C b, C c) {                                                      \
    return C{a.x * b.x + c.x - a.y * b.y, a.x * b.y + c.y + a.y * b.x};                           \
  }
STRIDE_CU_COMPLEX(f, cuFloatComplex, float, cuFloat)
STRIDE_CU_COMPLEX(, cuDoubleComplex, double, cuDouble)
STRIDE_DEVICE cuComplex make_cuComplex(float x, float y) { return cuComplex{x, y}; }
STRIDE_DEVICE cuDoubleComplex cuComplexFloatToDouble(cuFloatComplex z) {
  return cuDoubleComplex{z.x, z.y};
}
STRIDE_DEVICE cuFloatComplex cuComplexDoubleToFloat(cuDoubleComplex z) {
  return cuFloatComplex{(float)z.x, (float)z.y};
}
