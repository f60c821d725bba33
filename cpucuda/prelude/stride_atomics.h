// Atomic operations and fences.
#pragma once

#define STRIDE_ATOMIC_INTEGER(T)                                                                \
  STRIDE_DEVICE T atomicAdd(T* p, T v) { return __atomic_fetch_add(p, v, __ATOMIC_RELAXED); }   \
  STRIDE_DEVICE T atomicSub(T* p, T v) { return __atomic_fetch_sub(p, v, __ATOMIC_RELAXED); }   \
  STRIDE_DEVICE T atomicMin(T* p, T v) { return __atomic_fetch_min(p, v, __ATOMIC_RELAXED); }   \
  STRIDE_DEVICE T atomicMax(T* p, T v) { return __atomic_fetch_max(p, v, __ATOMIC_RELAXED); }   \
  STRIDE_DEVICE T atomicAnd(T* p, T v) { return __atomic_fetch_and(p, v, __ATOMIC_RELAXED); }   \
  STRIDE_DEVICE T atomicOr(T* p, T v) { return __atomic_fetch_or(p, v, __ATOMIC_RELAXED); }     \
  STRIDE_DEVICE T atomicXor(T* p, T v) { return __atomic_fetch_xor(p, v, __ATOMIC_RELAXED); }   \
  STRIDE_DEVICE T atomicExch(T* p, T v) { return __atomic_exchange_n(p, v, __ATOMIC_RELAXED); } \
  STRIDE_DEVICE T atomicCAS(T* p, T expected, T v) {                                            \
    __atomic_compare_exchange_n(p, &expected, v, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);    \
    return expected;                                                                            \
  }
STRIDE_ATOMIC_INTEGER(int)
STRIDE_ATOMIC_INTEGER(unsigned)
STRIDE_ATOMIC_INTEGER(long)
STRIDE_ATOMIC_INTEGER(unsigned long)
STRIDE_ATOMIC_INTEGER(long long)
STRIDE_ATOMIC_INTEGER(unsigned long long)
STRIDE_DEVICE float atomicAdd(float* p, float v) {
  return __atomic_fetch_add(p, v, __ATOMIC_RELAXED);
}
STRIDE_DEVICE double atomicAdd(double* p, double v) {
  return __atomic_fetch_add(p, v, __ATOMIC_RELAXED);
}
STRIDE_DEVICE float atomicExch(float* p, float v) {
  return __stride::from_bits(
      (uint32_t)__atomic_exchange_n((unsigned*)p, __stride::bits(v), __ATOMIC_RELAXED));
}
STRIDE_DEVICE unsigned short atomicCAS(unsigned short* p, unsigned short expected,
                                       unsigned short v) {
  __atomic_compare_exchange_n(p, &expected, v, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
  return expected;
}
// Counts up to `limit` and starts again; CUDA defines it by one compare and exchange.
STRIDE_DEVICE unsigned atomicInc(unsigned* p, unsigned limit) {
  unsigned old = __atomic_load_n(p, __ATOMIC_RELAXED);
  while (!__atomic_compare_exchange_n(p, &old, old >= limit ? 0 : old + 1, false, __ATOMIC_RELAXED,
                                      __ATOMIC_RELAXED)) {
  }
  return old;
}
STRIDE_DEVICE unsigned atomicDec(unsigned* p, unsigned limit) {
  unsigned old = __atomic_load_n(p, __ATOMIC_RELAXED);
  while (!__atomic_compare_exchange_n(p, &old, old == 0 || old > limit ? limit : old - 1, false,
                                      __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
  }
  return old;
}
// All scopes are equal here. Only the pointer determines T.
namespace __stride {
template <class T>
struct AsGiven {
  typedef T type;
};
template <class T>
using Given = typename AsGiven<T>::type;
}  // namespace __stride
#define STRIDE_ATOMIC_SCOPES(name)                            \
  template <class T>                                          \
  STRIDE_DEVICE T name##_block(T* p, __stride::Given<T> v) {  \
    return name(p, v);                                        \
  }                                                           \
  template <class T>                                          \
  STRIDE_DEVICE T name##_system(T* p, __stride::Given<T> v) { \
    return name(p, v);                                        \
  }
STRIDE_ATOMIC_SCOPES(atomicAdd)
STRIDE_ATOMIC_SCOPES(atomicSub)
STRIDE_ATOMIC_SCOPES(atomicMin)
STRIDE_ATOMIC_SCOPES(atomicMax)
STRIDE_ATOMIC_SCOPES(atomicAnd)
STRIDE_ATOMIC_SCOPES(atomicOr)
STRIDE_ATOMIC_SCOPES(atomicXor)
STRIDE_ATOMIC_SCOPES(atomicExch)
STRIDE_ATOMIC_SCOPES(atomicInc)
STRIDE_ATOMIC_SCOPES(atomicDec)
template <class T>
STRIDE_DEVICE T atomicCAS_block(T* p, __stride::Given<T> expected, __stride::Given<T> v) {
  return atomicCAS(p, expected, v);
}
template <class T>
STRIDE_DEVICE T atomicCAS_system(T* p, __stride::Given<T> expected, __stride::Given<T> v) {
  return atomicCAS(p, expected, v);
}

STRIDE_DEVICE void __threadfence() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
STRIDE_DEVICE void __threadfence_block() { __atomic_signal_fence(__ATOMIC_SEQ_CST); }
STRIDE_DEVICE void __threadfence_system() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
