// Barriers, votes and shuffles. A thread stores a value in its slot, waits for the others, and
// reads the slots that it needs. Then it waits again, so that no thread writes its slot again (the
// same operation in a loop) while another reads it.
#pragma once

STRIDE_DEVICE void __syncthreads() { __stride_cut(); }
STRIDE_DEVICE void __barrier_sync(unsigned) { __stride_cut(); }

namespace __stride {

typedef unsigned char Bytes32 __attribute__((ext_vector_type(32)));
typedef bool Bits32 __attribute__((ext_vector_type(32)));

STRIDE_DEVICE unsigned lane() { return __stride_tid_linear() & 31u; }
STRIDE_DEVICE unsigned first_of_warp() { return __stride_tid_linear() & ~31u; }

// CUDA's rule for every mask. CUDA leaves a violation undefined; here the launch fails.
STRIDE_DEVICE void check_mask(unsigned mask, const char* what) {
  if ((1u << lane() & mask) == 0) fail(what, NULL, 0);
}
#define STRIDE_CHECK_MASK(mask, name) \
  ::__stride::check_mask(             \
      mask,                           \
      name ": the mask does not name the thread that calls it (set the bit of its own lane)")

// The lanes of this thread's warp that take part, and those of them whose predicate holds. With
// mask 0 the active lanes take part.
struct Vote {
  unsigned present, yes;
  STRIDE_METHOD bool all() const { return present == yes; }
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
// The value of that lane; a thread's own value when the lane takes no part, which CUDA leaves
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

STRIDE_DEVICE void __syncwarp(unsigned mask = 0xffffffffu) {
  STRIDE_CHECK_MASK(mask, "__syncwarp");
  __stride_wait_warp(mask);
}
STRIDE_DEVICE unsigned __ballot_sync(unsigned mask, int predicate) {
  STRIDE_CHECK_MASK(mask, "__ballot_sync");
  return __stride::vote(mask, predicate != 0).yes;
}
STRIDE_DEVICE int __any_sync(unsigned mask, int predicate) {
  STRIDE_CHECK_MASK(mask, "__any_sync");
  return __stride::vote(mask, predicate != 0).yes != 0;
}
STRIDE_DEVICE int __all_sync(unsigned mask, int predicate) {
  STRIDE_CHECK_MASK(mask, "__all_sync");
  return __stride::vote(mask, predicate != 0).all();
}
STRIDE_DEVICE unsigned __activemask() { return __stride_wait_warp(0); }
STRIDE_DEVICE unsigned __ballot(int predicate) { return __stride::vote(0, predicate != 0).yes; }
STRIDE_DEVICE int __any(int predicate) { return __stride::vote(0, predicate != 0).yes != 0; }
STRIDE_DEVICE int __all(int predicate) { return __stride::vote(0, predicate != 0).all(); }

// Each shuffle with a mask, and in the older form with the active lanes.
namespace __stride {
template <class T>
STRIDE_DEVICE T shuffle(unsigned mask, T value, int source, int width) {
  unsigned group = lane() & ~(unsigned)(width - 1);
  return exchange(mask, value, group | ((unsigned)source & (unsigned)(width - 1)));
}
template <class T>
STRIDE_DEVICE T shuffle_up(unsigned mask, T value, unsigned delta, int width) {
  unsigned within = lane() & (unsigned)(width - 1);
  return exchange(mask, value, within < delta ? lane() : lane() - delta);
}
template <class T>
STRIDE_DEVICE T shuffle_down(unsigned mask, T value, unsigned delta, int width) {
  unsigned within = lane() & (unsigned)(width - 1);
  return exchange(mask, value, within + delta >= (unsigned)width ? lane() : lane() + delta);
}
template <class T>
STRIDE_DEVICE T shuffle_xor(unsigned mask, T value, int lanes, int width) {
  unsigned other = lane() ^ (unsigned)lanes, group = lane() & ~(unsigned)(width - 1);
  return exchange(mask, value, other >= group + (unsigned)width || other >= 32 ? lane() : other);
}
}  // namespace __stride
#define STRIDE_SHUFFLE(cuda, ours, Lanes)                                            \
  template <class T>                                                                 \
  STRIDE_DEVICE T cuda##_sync(unsigned mask, T value, Lanes lanes, int width = 32) { \
    STRIDE_CHECK_MASK(mask, #cuda "_sync");                                          \
    return __stride::ours(mask, value, lanes, width);                                \
  }                                                                                  \
  template <class T>                                                                 \
  STRIDE_DEVICE T cuda(T value, Lanes lanes, int width = 32) {                       \
    return __stride::ours(0, value, lanes, width);                                   \
  }
STRIDE_SHUFFLE(__shfl, shuffle, int)
STRIDE_SHUFFLE(__shfl_up, shuffle_up, unsigned)
STRIDE_SHUFFLE(__shfl_down, shuffle_down, unsigned)
STRIDE_SHUFFLE(__shfl_xor, shuffle_xor, int)

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
  STRIDE_CHECK_MASK(m, "__reduce_add_sync");
  return __stride::reduce_lanes(m, v, [](int a, int b) { return a + b; });
}
STRIDE_DEVICE unsigned __reduce_add_sync(unsigned m, unsigned v) {
  STRIDE_CHECK_MASK(m, "__reduce_add_sync");
  return __stride::reduce_lanes(m, v, [](unsigned a, unsigned b) { return a + b; });
}
STRIDE_DEVICE int __reduce_min_sync(unsigned m, int v) {
  STRIDE_CHECK_MASK(m, "__reduce_min_sync");
  return __stride::reduce_lanes(m, v, [](int a, int b) { return a < b ? a : b; });
}
STRIDE_DEVICE unsigned __reduce_min_sync(unsigned m, unsigned v) {
  STRIDE_CHECK_MASK(m, "__reduce_min_sync");
  return __stride::reduce_lanes(m, v, [](unsigned a, unsigned b) { return a < b ? a : b; });
}
STRIDE_DEVICE int __reduce_max_sync(unsigned m, int v) {
  STRIDE_CHECK_MASK(m, "__reduce_max_sync");
  return __stride::reduce_lanes(m, v, [](int a, int b) { return a < b ? b : a; });
}
STRIDE_DEVICE unsigned __reduce_max_sync(unsigned m, unsigned v) {
  STRIDE_CHECK_MASK(m, "__reduce_max_sync");
  return __stride::reduce_lanes(m, v, [](unsigned a, unsigned b) { return a < b ? b : a; });
}
STRIDE_DEVICE unsigned __reduce_and_sync(unsigned m, unsigned v) {
  STRIDE_CHECK_MASK(m, "__reduce_and_sync");
  return __stride::reduce_lanes(m, v, [](unsigned a, unsigned b) { return a & b; });
}
STRIDE_DEVICE unsigned __reduce_or_sync(unsigned m, unsigned v) {
  STRIDE_CHECK_MASK(m, "__reduce_or_sync");
  return __stride::reduce_lanes(m, v, [](unsigned a, unsigned b) { return a | b; });
}
STRIDE_DEVICE unsigned __reduce_xor_sync(unsigned m, unsigned v) {
  STRIDE_CHECK_MASK(m, "__reduce_xor_sync");
  return __stride::reduce_lanes(m, v, [](unsigned a, unsigned b) { return a ^ b; });
}
template <class T>
STRIDE_DEVICE unsigned __match_any_sync(unsigned mask, T value) {
  STRIDE_CHECK_MASK(mask, "__match_any_sync");
  T* slot = (T*)__stride_slot(sizeof(T));
  slot[__stride_tid_linear()] = value;
  unsigned present = __stride_wait_warp(mask), result = 0;
  for (unsigned i = 0; i < 32; ++i) {
    if ((present >> i & 1) != 0 && slot[__stride::first_of_warp() + i] == value) result |= 1u << i;
  }
  __stride_wait_warp(present);
  return result;
}
template <class T>
STRIDE_DEVICE unsigned __match_all_sync(unsigned mask, T value, int* all) {
  STRIDE_CHECK_MASK(mask, "__match_all_sync");
  T* slot = (T*)__stride_slot(sizeof(T));
  slot[__stride_tid_linear()] = value;
  unsigned present = __stride_wait_warp(mask);
  bool same = true;
  for (unsigned i = 0; i < 32; ++i) {
    if ((present >> i & 1) != 0 && !(slot[__stride::first_of_warp() + i] == value)) same = false;
  }
  __stride_wait_warp(present);
  *all = same;
  return same ? present : 0;
}
