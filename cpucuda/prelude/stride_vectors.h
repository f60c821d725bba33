// CUDA's short vectors and their make functions.
#pragma once

#define STRIDE_VECTORS(N, T, A1, A2, A4)                           \
  struct N##1 {                                                    \
    T x;                                                           \
  };                                                               \
  struct __align__(A2) N##2 {                                      \
    T x, y;                                                        \
  };                                                               \
  struct __align__(A4) N##4 {                                      \
    T x, y, z, w;                                                  \
  };                                                               \
  STRIDE_DEVICE N##1 make_##N##1(T x) { return N##1 {x}; }         \
  STRIDE_DEVICE N##2 make_##N##2(T x, T y) { return N##2 {x, y}; } \
  STRIDE_DEVICE N##4 make_##N##4(T x, T y, T z, T w) { return N##4 {x, y, z, w}; }
#define STRIDE_VECTOR3(N, T) \
  struct N##3 {              \
    T x, y, z;               \
  };                         \
  STRIDE_DEVICE N##3 make_##N##3(T x, T y, T z) { return N##3 {x, y, z}; }

STRIDE_VECTORS(char, signed char, 1, 2, 4)
STRIDE_VECTOR3(char, signed char)
STRIDE_VECTORS(uchar, unsigned char, 1, 2, 4)
STRIDE_VECTOR3(uchar, unsigned char)
STRIDE_VECTORS(short, short, 2, 4, 8)
STRIDE_VECTOR3(short, short)
STRIDE_VECTORS(ushort, unsigned short, 2, 4, 8)
STRIDE_VECTOR3(ushort, unsigned short)
STRIDE_VECTORS(int, int, 4, 8, 16)
STRIDE_VECTOR3(int, int)
STRIDE_VECTORS(uint, unsigned, 4, 8, 16)
STRIDE_VECTORS(long, long, 8, 16, 16)
STRIDE_VECTOR3(long, long)
STRIDE_VECTORS(ulong, unsigned long, 8, 16, 16)
STRIDE_VECTOR3(ulong, unsigned long)
STRIDE_VECTORS(longlong, long long, 8, 16, 16)
STRIDE_VECTOR3(longlong, long long)
STRIDE_VECTORS(ulonglong, unsigned long long, 8, 16, 16)
STRIDE_VECTOR3(ulonglong, unsigned long long)
STRIDE_VECTORS(float, float, 4, 8, 16)
STRIDE_VECTOR3(float, float)
STRIDE_VECTORS(double, double, 8, 16, 16)
STRIDE_VECTOR3(double, double)

// Descriptions of pitched memory and images, which kernels get by value.
struct cudaPitchedPtr {
  void* ptr;
  size_t pitch, xsize, ysize;
};
struct cudaExtent {
  size_t width, height, depth;
};
struct cudaPos {
  size_t x, y, z;
};
STRIDE_DEVICE cudaPitchedPtr make_cudaPitchedPtr(void* p, size_t pitch, size_t x, size_t y) {
  return {p, pitch, x, y};
}
STRIDE_DEVICE cudaExtent make_cudaExtent(size_t w, size_t h, size_t d) { return {w, h, d}; }
STRIDE_DEVICE cudaPos make_cudaPos(size_t x, size_t y, size_t z) { return {x, y, z}; }
