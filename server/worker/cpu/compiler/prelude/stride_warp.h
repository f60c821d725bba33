// Barriers, votes and shuffles. A thread leaves a value in its slot, the others are waited for, and
// it reads the slots it wants; then they are waited for again, so that none writes its slot anew
// (the same operation in a loop) while it is read.
#pragma once

STRIDE_DEVICE void __syncthreads() { __stride_cut(); }
STRIDE_DEVICE void __barrier_sync(unsigned) { __stride_cut(); }
STRIDE_DEVICE void __syncwarp(unsigned mask = 0xffffffffu) { __stride_wait_warp(mask); }

namespace __stride {

typedef unsigned char Bytes32 __attribute__((ext_vector_type(32)));
typedef bool Bits32 __attribute__((ext_vector_type(32)));

STRIDE_DEVICE unsigned lane() { return __stride_tid_linear() & 31u; }
STRIDE_DEVICE unsigned first_of_warp() { return __stride_tid_linear() & ~31u; }

// The lanes of this thread's warp that take part, and those of them whose predicate holds. With
// mask 0 those take part that are here.
struct Vote {
  unsigned present, yes;
};
STRIDE_DEVICE Vote vote(unsigned mask, bool predicate) {
  unsigned char* slot = (unsigned char*)__stride_slot(1);
  slot[__stride_tid_linear()] = predicate;
  unsigned present = __stride_wait_warp(mask);
  Bytes32 all;
  __builtin_memcpy(&all, slot + first_of_warp(), 32);
  Bits32 bits = __builtin_convertvector(all != 0, Bits32);
  unsigned yes;
  __builtin_memcpy(&yes, &bits, 4);
  __stride_wait_warp(present);
  return Vote{present, yes & present};
}
// What that lane gave; a thread's own value when the lane takes no part, which CUDA leaves
// undefined.
template <class T>
STRIDE_DEVICE T exchange(unsigned mask, T value, unsigned from) {
  T* slot = (T*)__stride_slot(sizeof(T));
  slot[__stride_tid_linear()] = value;
  unsigned present = __stride_wait_warp(mask);
  T result = slot[first_of_warp() + ((present >> from & 1u) != 0 ? from : lane())];
  __stride_wait_warp(present);
  return result;
}
STRIDE_DEVICE int count(bool predicate) {
  int* counter = (int*)__stride_slot_clear(4);
  __atomic_fetch_add(counter, predicate ? 1 : 0, __ATOMIC_RELAXED);
  __stride_cut();
  return *counter;
}

}  // namespace __stride

STRIDE_DEVICE int __syncthreads_count(int predicate) { return __stride::count(predicate != 0); }
STRIDE_DEVICE int __syncthreads_or(int predicate) { return __stride::count(predicate != 0) != 0; }
STRIDE_DEVICE int __syncthreads_and(int predicate) { return __stride::count(predicate == 0) == 0; }

STRIDE_DEVICE unsigned __ballot_sync(unsigned mask, int predicate) {
  return __stride::vote(mask, predicate != 0).yes;
}
STRIDE_DEVICE int __any_sync(unsigned mask, int predicate) {
  return __stride::vote(mask, predicate != 0).yes != 0;
}
STRIDE_DEVICE int __all_sync(unsigned mask, int predicate) {
  __stride::Vote v = __stride::vote(mask, predicate != 0);
  return v.present == v.yes;
}
STRIDE_DEVICE unsigned __activemask() { return __stride_wait_warp(0); }
STRIDE_DEVICE unsigned __ballot(int predicate) { return __ballot_sync(0, predicate); }
STRIDE_DEVICE int __any(int predicate) { return __any_sync(0, predicate); }
STRIDE_DEVICE int __all(int predicate) { return __all_sync(0, predicate); }

template <class T>
STRIDE_DEVICE T __shfl_sync(unsigned mask, T value, int source, int width = 32) {
  unsigned lane = __stride::lane(), group = lane & ~(unsigned)(width - 1);
  return __stride::exchange(mask, value, group | ((unsigned)source & (unsigned)(width - 1)));
}
template <class T>
STRIDE_DEVICE T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = 32) {
  unsigned lane = __stride::lane(), within = lane & (unsigned)(width - 1);
  return __stride::exchange(mask, value, within < delta ? lane : lane - delta);
}
template <class T>
STRIDE_DEVICE T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = 32) {
  unsigned lane = __stride::lane(), within = lane & (unsigned)(width - 1);
  return __stride::exchange(mask, value, within + delta >= (unsigned)width ? lane : lane + delta);
}
template <class T>
STRIDE_DEVICE T __shfl_xor_sync(unsigned mask, T value, int lanes, int width = 32) {
  unsigned lane = __stride::lane(), other = lane ^ (unsigned)lanes,
           group = lane & ~(unsigned)(width - 1);
  return __stride::exchange(mask, value,
                            other >= group + (unsigned)width || other >= 32 ? lane : other);
}
template <class T>
STRIDE_DEVICE T __shfl(T value, int source, int width = 32) {
  return __shfl_sync(0, value, source, width);
}
template <class T>
STRIDE_DEVICE T __shfl_up(T value, unsigned delta, int width = 32) {
  return __shfl_up_sync(0, value, delta, width);
}
template <class T>
STRIDE_DEVICE T __shfl_down(T value, unsigned delta, int width = 32) {
  return __shfl_down_sync(0, value, delta, width);
}
template <class T>
STRIDE_DEVICE T __shfl_xor(T value, int lanes, int width = 32) {
  return __shfl_xor_sync(0, value, lanes, width);
}

namespace __stride {
// One thread's value after another's, over the lanes of `mask` that take part.
template <class T, class F>
STRIDE_DEVICE T reduce_lanes(unsigned mask, T value, F combine) {
  T* slot = (T*)__stride_slot(sizeof(T));
  slot[__stride_tid_linear()] = value;
  unsigned present = __stride_wait_warp(mask);
  T result = value;
  bool first = true;
  for (unsigned i = 0; i < 32; ++i) {
    if ((present >> i & 1) == 0) continue;
    result = first ? slot[first_of_warp() + i] : combine(result, slot[first_of_warp() + i]);
    first = false;
  }
  __stride_wait_warp(present);
  return result;
}
}  // namespace __stride
STRIDE_DEVICE int __reduce_add_sync(unsigned m, int v) {
  return __stride::reduce_lanes(m, v, [](int a, int b) { return a + b; });
}
STRIDE_DEVICE unsigned __reduce_add_sync(unsigned m, unsigned v) {
  return __stride::reduce_lanes(m, v, [](unsigned a, unsigned b) { return a + b; });
}
STRIDE_DEVICE int __reduce_min_sync(unsigned m, int v) {
  return __stride::reduce_lanes(m, v, [](int a, int b) { return a < b ? a : b; });
}
STRIDE_DEVICE unsigned __reduce_min_sync(unsigned m, unsigned v) {
  return __stride::reduce_lanes(m, v, [](unsigned a, unsigned b) { return a < b ? a : b; });
}
STRIDE_DEVICE int __reduce_max_sync(unsigned m, int v) {
  return __stride::reduce_lanes(m, v, [](int a, int b) { return a < b ? b : a; });
}
STRIDE_DEVICE unsigned __reduce_max_sync(unsigned m, unsigned v) {
  return __stride::reduce_lanes(m, v, [](unsigned a, unsigned b) { return a < b ? b : a; });
}
STRIDE_DEVICE unsigned __reduce_and_sync(unsigned m, unsigned v) {
  return __stride::reduce_lanes(m, v, [](unsigned a, unsigned b) { return a & b; });
}
STRIDE_DEVICE unsigned __reduce_or_sync(unsigned m, unsigned v) {
  return __stride::reduce_lanes(m, v, [](unsigned a, unsigned b) { return a | b; });
}
STRIDE_DEVICE unsigned __reduce_xor_sync(unsigned m, unsigned v) {
  return __stride::reduce_lanes(m, v, [](unsigned a, unsigned b) { return a ^ b; });
}
template <class T>
STRIDE_DEVICE unsigned __match_any_sync(unsigned mask, T value) {
  T* slot = (T*)__stride_slot(sizeof(T));
  slot[__stride_tid_linear()] = value;
  unsigned present = __stride_wait_warp(mask), result = 0;
  for (unsigned i = 0; i < 32; ++i) {
    if ((present >> i & 1) != 0 && slot[__stride::first_of_warp() + i] == value) result |= 1u << i;
  }
  __stride_wait_warp(present);
  return result;
}
