// CUB's operators, iterators and small types.
#pragma once

#include "stride_std.h"

namespace __stride {
template <class T>
T declare();
template <bool condition>
struct OnlyIf {};
template <>
struct OnlyIf<true> {
  typedef void type;
};
// Has one type, so that a sum of shorts stays one.
struct Plus {
  template <class T>
  STRIDE_METHOD T operator()(const T& a, const T& b) const {
    return (T)(a + b);
  }
};
}  // namespace __stride

namespace cub {

struct NullType {};
template <int v>
struct Int2Type {
  enum { VALUE = v };
};
template <int n, int current = n, int count = 0>
struct Log2 {
  enum { VALUE = Log2<n, (current >> 1), count + 1>::VALUE };
};
template <int n, int count>
struct Log2<n, 0, count> {
  enum { VALUE = (1 << (count - 1)) < n ? count : count - 1 };
};
template <bool condition, class A, class B>
using If = std::conditional<condition, A, B>;
template <class A, class B>
struct Equals {
  enum { VALUE = __is_same(A, B), NEGATE = !VALUE };
};
// Memory for a T whose constructor must not run.
template <class T>
struct Uninitialized {
  alignas(T) unsigned char storage[sizeof(T)];
  STRIDE_METHOD T& Alias() { return reinterpret_cast<T&>(*this); }
};

struct Sum {
  template <class A, class B>
  STRIDE_METHOD auto operator()(const A& a, const B& b) const {
    return a + b;
  }
};
struct Difference {
  template <class A, class B>
  STRIDE_METHOD auto operator()(const A& a, const B& b) const {
    return a - b;
  }
};
struct Max {
  template <class T>
  STRIDE_METHOD T operator()(const T& a, const T& b) const {
    return a < b ? b : a;
  }
};
struct Min {
  template <class T>
  STRIDE_METHOD T operator()(const T& a, const T& b) const {
    return b < a ? b : a;
  }
};
struct Equality {
  template <class A, class B>
  STRIDE_METHOD bool operator()(const A& a, const B& b) const {
    return a == b;
  }
};
struct Inequality {
  template <class A, class B>
  STRIDE_METHOD bool operator()(const A& a, const B& b) const {
    return a != b;
  }
};
template <class F>
struct InequalityWrapper {
  F f;
  STRIDE_METHOD InequalityWrapper(F f) : f(f) {}
  template <class A, class B>
  STRIDE_METHOD bool operator()(const A& a, const B& b) {
    return !f(a, b);
  }
};
template <class K, class V>
struct KeyValuePair {
  typedef K Key;
  typedef V Value;
  K key;
  V value;
  KeyValuePair() = default;
  STRIDE_METHOD KeyValuePair(const K& key, const V& value) : key(key), value(value) {}
  STRIDE_METHOD bool operator!=(const KeyValuePair& other) const {
    return value != other.value || key != other.key;
  }
};
// The least or greatest value; of equal ones that with the least key.
struct ArgMax {
  template <class T>
  STRIDE_METHOD T operator()(const T& a, const T& b) const {
    return b.value > a.value || (a.value == b.value && b.key < a.key) ? b : a;
  }
};
struct ArgMin {
  template <class T>
  STRIDE_METHOD T operator()(const T& a, const T& b) const {
    return b.value < a.value || (a.value == b.value && b.key < a.key) ? b : a;
  }
};
template <class T>
struct CastOp {
  template <class A>
  STRIDE_METHOD T operator()(const A& a) const {
    return (T)a;
  }
};

enum CacheLoadModifier {
  LOAD_DEFAULT,
  LOAD_CA,
  LOAD_CG,
  LOAD_CS,
  LOAD_CV,
  LOAD_LDG,
  LOAD_VOLATILE
};
enum CacheStoreModifier { STORE_DEFAULT, STORE_WB, STORE_CG, STORE_CS, STORE_WT, STORE_VOLATILE };
template <CacheLoadModifier M = LOAD_DEFAULT, class T>
STRIDE_DEVICE T ThreadLoad(T* p) {
  return M == LOAD_VOLATILE || M == LOAD_CV ? *(volatile T*)p : *p;
}
template <CacheStoreModifier M = STORE_DEFAULT, class T>
STRIDE_DEVICE void ThreadStore(T* p, T value) {
  *p = value;
}

template <class T, class D = ptrdiff_t>
struct CountingInputIterator {
  typedef T value_type;
  T at;
  explicit STRIDE_METHOD CountingInputIterator(T at) : at(at) {}
  STRIDE_METHOD T operator*() const { return at; }
  STRIDE_METHOD T operator[](D i) const { return at + (T)i; }
  STRIDE_METHOD CountingInputIterator operator+(D i) const {
    return CountingInputIterator(at + (T)i);
  }
  STRIDE_METHOD CountingInputIterator& operator++() {
    ++at;
    return *this;
  }
};
template <class T, class D = ptrdiff_t>
struct ConstantInputIterator {
  typedef T value_type;
  T value;
  explicit STRIDE_METHOD ConstantInputIterator(T value) : value(value) {}
  STRIDE_METHOD T operator*() const { return value; }
  STRIDE_METHOD T operator[](D) const { return value; }
  STRIDE_METHOD ConstantInputIterator operator+(D) const { return *this; }
};
template <class T, class F, class I, class D = ptrdiff_t>
struct TransformInputIterator {
  typedef T value_type;
  I from;
  F f;
  STRIDE_METHOD TransformInputIterator(I from, F f) : from(from), f(f) {}
  STRIDE_METHOD T operator*() const { return f(*from); }
  STRIDE_METHOD T operator[](D i) const { return f(from[i]); }
  STRIDE_METHOD TransformInputIterator operator+(D i) const {
    return TransformInputIterator(from + i, f);
  }
};

STRIDE_DEVICE unsigned LaneId() { return __stride::lane(); }
STRIDE_DEVICE unsigned WarpId() { return __stride_tid_linear() / 32; }
STRIDE_DEVICE unsigned LaneMaskLt() { return (1u << __stride::lane()) - 1; }
STRIDE_DEVICE unsigned LaneMaskLe() { return (2u << __stride::lane()) - 1; }
STRIDE_DEVICE unsigned LaneMaskGt() { return ~LaneMaskLe(); }
STRIDE_DEVICE unsigned LaneMaskGe() { return ~LaneMaskLt(); }
STRIDE_DEVICE int RowMajorTid(int, int, int) { return (int)__stride_tid_linear(); }
STRIDE_DEVICE void CTA_SYNC() { __syncthreads(); }
STRIDE_DEVICE void WARP_SYNC(unsigned mask) { __syncwarp(mask); }
template <int L, class T>
STRIDE_DEVICE T ShuffleIndex(T value, int from, unsigned mask) {
  return __shfl_sync(mask, value, from, L);
}

}  // namespace cub
