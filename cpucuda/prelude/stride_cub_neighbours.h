// CUB's primitives for neighbouring items of a block.
#pragma once

#include "stride_cub_items.h"

namespace cub {

namespace __stride_parts {
// The items of a block, and the one before and after a thread's own.
template <class T, int N>
struct Neighbours {
  __stride::BlockItems<T, N> slots;
  STRIDE_METHOD explicit Neighbours(T (&items)[N]) {
    slots.Put(items);
    __stride_cut();
  }
  STRIDE_METHOD int place(int i) const { return (int)__stride_tid_linear() * N + i; }
  STRIDE_METHOD bool is_first(int i) const { return place(i) == 0; }
  STRIDE_METHOD bool is_last(int i) const {
    return place(i) + 1 == (int)__stride::num_threads() * N;
  }
  STRIDE_METHOD const T& before(int i) const { return slots.all[place(i) - 1]; }
  STRIDE_METHOD const T& after(int i) const { return slots.all[place(i) + 1]; }
};
// Some functors want the index, too; some take references to what is not const.
template <class F, class T>
STRIDE_DEVICE auto flag(F& f, T a, T b, int index, int) -> decltype(bool(f(a, b, index))) {
  return f(a, b, index);
}
template <class F, class T>
STRIDE_DEVICE bool flag(F& f, T a, T b, int, long) {
  return f(a, b);
}
}  // namespace __stride_parts

template <class T, int X, int Y = 1, int Z = 1, int = 0>
class BlockDiscontinuity {
  template <int N, class G, class F>
  static STRIDE_METHOD void Heads(G* flags, T (&items)[N], F f, const T* before) {
    __stride_parts::Neighbours<T, N> near(items);
    for (int i = 0; i < N; ++i) {
      if (near.is_first(i) && before == 0) {
        flags[i] = 1;
      } else {
        const T& left = near.is_first(i) ? *before : near.before(i);
        flags[i] = __stride_parts::flag(f, left, items[i], near.place(i), 0);
      }
    }
    __stride_cut();
  }
  template <int N, class G, class F>
  static STRIDE_METHOD void Tails(G* flags, T (&items)[N], F f, const T* after) {
    __stride_parts::Neighbours<T, N> near(items);
    for (int i = 0; i < N; ++i) {
      if (near.is_last(i) && after == 0) {
        flags[i] = 1;
      } else {
        const T& right = near.is_last(i) ? *after : near.after(i);
        flags[i] = __stride_parts::flag(f, items[i], right, near.place(i) + 1, 0);
      }
    }
    __stride_cut();
  }

 public:
  STRIDE_CUB_STORAGE(BlockDiscontinuity)
  template <int N, class G, class F>
  STRIDE_METHOD void FlagHeads(G (&flags)[N], T (&items)[N], F f) {
    Heads(flags, items, f, 0);
  }
  template <int N, class G, class F>
  STRIDE_METHOD void FlagHeads(G (&flags)[N], T (&items)[N], F f, T before) {
    Heads(flags, items, f, &before);
  }
  template <int N, class G, class F>
  STRIDE_METHOD void FlagTails(G (&flags)[N], T (&items)[N], F f) {
    Tails(flags, items, f, 0);
  }
  template <int N, class G, class F>
  STRIDE_METHOD void FlagTails(G (&flags)[N], T (&items)[N], F f, T after) {
    Tails(flags, items, f, &after);
  }
  template <int N, class G, class F>
  STRIDE_METHOD void FlagHeadsAndTails(G (&heads)[N], G (&tails)[N], T (&items)[N], F f) {
    Heads(heads, items, f, 0);
    Tails(tails, items, f, 0);
  }
};

template <class T, int X, int Y = 1, int Z = 1, int = 0>
class BlockAdjacentDifference {
  template <int N, class U, class F>
  static STRIDE_METHOD void Left(T (&in)[N], U (&out)[N], F f, const T* before, int num_valid) {
    __stride_parts::Neighbours<T, N> near(in);
    for (int i = N - 1; i >= 0; --i) {
      bool none = near.place(i) >= num_valid || (near.is_first(i) && before == 0);
      if (none) {
        out[i] = near.slots.own()[i];
      } else {
        // Some functors take references to what is not const.
        T right = near.slots.own()[i], left = near.is_first(i) ? *before : near.before(i);
        out[i] = f(right, left);
      }
    }
    __stride_cut();
  }
  template <int N, class U, class F>
  static STRIDE_METHOD void Right(T (&in)[N], U (&out)[N], F f, const T* after, int num_valid) {
    __stride_parts::Neighbours<T, N> near(in);
    for (int i = 0; i < N; ++i) {
      bool last = near.is_last(i);
      bool none = near.place(i) + 1 >= num_valid && (after == 0 || !last);
      if (none) {
        out[i] = near.slots.own()[i];
      } else {
        T left = near.slots.own()[i], right = last ? *after : near.after(i);
        out[i] = f(left, right);
      }
    }
    __stride_cut();
  }
  static constexpr int kAll = 1 << 30;

 public:
  STRIDE_CUB_STORAGE(BlockAdjacentDifference)
  template <int N, class U, class F>
  STRIDE_METHOD void SubtractLeft(T (&in)[N], U (&out)[N], F f) {
    Left(in, out, f, 0, kAll);
  }
  template <int N, class U, class F>
  STRIDE_METHOD void SubtractLeft(T (&in)[N], U (&out)[N], F f, T before) {
    Left(in, out, f, &before, kAll);
  }
  template <int N, class U, class F>
  STRIDE_METHOD void SubtractLeftPartialTile(T (&in)[N], U (&out)[N], F f, int num_valid) {
    Left(in, out, f, 0, num_valid);
  }
  template <int N, class U, class F>
  STRIDE_METHOD void SubtractRight(T (&in)[N], U (&out)[N], F f) {
    Right(in, out, f, 0, (int)__stride::num_threads() * N);
  }
  template <int N, class U, class F>
  STRIDE_METHOD void SubtractRight(T (&in)[N], U (&out)[N], F f, T after) {
    Right(in, out, f, &after, kAll);
  }
  template <int N, class U, class F>
  STRIDE_METHOD void SubtractRightPartialTile(T (&in)[N], U (&out)[N], F f, int num_valid) {
    Right(in, out, f, 0, num_valid);
  }
};

template <class T, int X, int Y = 1, int Z = 1, int = 0>
class BlockShuffle {
  static STRIDE_METHOD void From(T in, T& out, int other) {
    __stride::BlockItems<T, 1> slots;
    slots.Put({in});
    __stride_cut();
    if (other >= 0 && other < (int)__stride::num_threads()) out = slots.all[other];
    __stride_cut();
  }

 public:
  STRIDE_CUB_STORAGE(BlockShuffle)
  STRIDE_METHOD void Offset(T in, T& out, int distance = 1) {
    From(in, out, (int)__stride_tid_linear() + distance);
  }
  STRIDE_METHOD void Rotate(T in, T& out, unsigned distance = 1) {
    From(in, out, (int)((__stride_tid_linear() + distance) % __stride::num_threads()));
  }
  template <int N>
  STRIDE_METHOD void Up(T (&in)[N], T (&out)[N]) {
    __stride_parts::Neighbours<T, N> near(in);
    for (int i = N - 1; i >= 0; --i) {
      if (!near.is_first(i)) out[i] = near.before(i);
    }
    __stride_cut();
  }
  template <int N>
  STRIDE_METHOD void Down(T (&in)[N], T (&out)[N]) {
    __stride_parts::Neighbours<T, N> near(in);
    for (int i = 0; i < N; ++i) {
      if (!near.is_last(i)) out[i] = near.after(i);
    }
    __stride_cut();
  }
};

}  // namespace cub
