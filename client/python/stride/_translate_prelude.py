"""CUDA C++ text that translated functions call."""

# In front of every kernel: what Python's operators mean where C++ differs.
PRELUDE = r"""
template <class T> __device__ T st_floor_divide(T a, T b) {
  T q = a / b, r = a - q * b;
  return r != 0 && ((r < 0) != (b < 0)) ? q - 1 : q;
}
template <class T> __device__ T st_modulo(T a, T b) {
  T r = a % b;
  return r != 0 && ((r < 0) != (b < 0)) ? r + b : r;
}
template <class T> __device__ T st_float_modulo(T a, T b) {
  T r = fmod(a, b);
  if (r == 0) return copysign(r, b);
  return (r < 0) != (b < 0) ? r + b : r;
}
template <class T> __device__ T st_float_floor_divide(T a, T b) {
  if (b == 0) return a / b;
  T quotient = (a - st_float_modulo(a, b)) / b, whole = floor(quotient);
  return quotient - whole > (T)0.5 ? whole + 1 : whole;
}
template <class T> __device__ T st_power(T a, long long n) {
  T result = 1;
  for (bool negative = n < 0; n != 0; n /= 2, a *= a) {
    if (n % 2 != 0) result *= a;
    if (negative && n / 2 == 0) return (T)1 / result;
  }
  return result;
}
template <class T> __device__ T st_min(T a, T b) { return b < a ? b : a; }
template <class T> __device__ T st_max(T a, T b) { return b > a ? b : a; }
__device__ inline long long st_wrap(long long i, long long extent) { return i < 0 ? i + extent : i; }
"""

ATOMICS = r"""
template <class T, class Bits, class Combine> __device__ T st_atomic_loop(T* p, Combine combine) {
  Bits old = *(volatile Bits*)p, seen;
  for (;;) {
    seen = old;
    T before;
    memcpy(&before, &seen, sizeof before);
    T after = combine(before);
    Bits next;
    memcpy(&next, &after, sizeof next);
    old = atomicCAS((Bits*)p, seen, next);
    if (old == seen) return before;
  }
}
template <class T> __device__ T st_atomic_add(T* p, T v) { return atomicAdd(p, v); }
template <> __device__ inline long long st_atomic_add(long long* p, long long v) {
  return (long long)atomicAdd((unsigned long long*)p, (unsigned long long)v);
}
template <class T> __device__ T st_atomic_sub(T* p, T v) { return st_atomic_add(p, (T)-v); }
template <class T> __device__ T st_atomic_min(T* p, T v) { return atomicMin(p, v); }
template <class T> __device__ T st_atomic_max(T* p, T v) { return atomicMax(p, v); }
template <> __device__ inline float st_atomic_min(float* p, float v) {
  return st_atomic_loop<float, unsigned>(p, [v](float a) { return v < a || a != a ? v : a; });
}
template <> __device__ inline float st_atomic_max(float* p, float v) {
  return st_atomic_loop<float, unsigned>(p, [v](float a) { return v > a || a != a ? v : a; });
}
template <> __device__ inline double st_atomic_min(double* p, double v) {
  return st_atomic_loop<double, unsigned long long>(p, [v](double a) { return v < a || a != a ? v : a; });
}
template <> __device__ inline double st_atomic_max(double* p, double v) {
  return st_atomic_loop<double, unsigned long long>(p, [v](double a) { return v > a || a != a ? v : a; });
}
#define ST_ATOMIC_BITS(name, function)                                                         \
  template <class T> __device__ T name(T* p, T v) { return function(p, v); }                   \
  template <> __device__ inline long long name(long long* p, long long v) {                    \
    return (long long)function((unsigned long long*)p, (unsigned long long)v);                 \
  }
ST_ATOMIC_BITS(st_atomic_and_, atomicAnd)
ST_ATOMIC_BITS(st_atomic_or_, atomicOr)
ST_ATOMIC_BITS(st_atomic_xor, atomicXor)
template <class T> __device__ T st_atomic_exch(T* p, T v) { return atomicExch(p, v); }
template <> __device__ inline long long st_atomic_exch(long long* p, long long v) {
  return (long long)atomicExch((unsigned long long*)p, (unsigned long long)v);
}
template <> __device__ inline double st_atomic_exch(double* p, double v) {
  return st_atomic_loop<double, unsigned long long>(p, [v](double) { return v; });
}
template <class T> __device__ T st_atomic_cas(T* p, T expected, T v) { return atomicCAS(p, expected, v); }
template <> __device__ inline long long st_atomic_cas(long long* p, long long expected, long long v) {
  return (long long)atomicCAS((unsigned long long*)p, (unsigned long long)expected, (unsigned long long)v);
}
"""
