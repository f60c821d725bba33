// Declarations shared by all routines. Before this text the emitter has written, from the code:
//   T0, T1, ...          the operands' types; TLast: the last one's
//   Launch               with items, count, extents[kRank], pass[4], scratch, fault, operand0,
//                        operand1, ..., scalars
//   ST_LAST              the last operand's name; ST_MIDDLE(F): F(1) F(2) ... for those between
//                        first and last
//   kRank, kOption0, ... constants; Index: st_u32 where all linear indices fit it
//   run0, run1, ...      the programs; Program0, Program1, ... their results' types;
//                        Argument0, ... the types of their first arguments
// A phase is `phaseN(const Launch&, st_i64 item)`, called for each item below launch.items, in any
// order and concurrently. ST_THREADS threads of a block call a block's phase together for one item.

#if ST_CUDA
#define ST_THREAD ((int)threadIdx.x)
#define ST_THREADS 256
#define ST_SHARED __shared__
#define ST_SYNC() __syncthreads()
ST_FN st_u64 st_swap_if(st_u64* at, st_u64 expected, st_u64 wanted) {
  return atomicCAS(at, expected, wanted);
}
ST_FN void st_raise(st_u64* at, st_u64 value) { atomicMax(at, value); }
#else
#define ST_THREAD 0
#define ST_THREADS 1
#define ST_SHARED
#define ST_SYNC() (void)0
// Not inlined, so that long text used in several places is compiled once.
#if defined(__CUDA__)
#define ST_CALL static __attribute__((device, noinline))
#else
#define ST_CALL static __attribute__((noinline))
#endif
// Returns the previous value.
ST_FN st_u64 st_swap_if(st_u64* at, st_u64 expected, st_u64 wanted) {
  __atomic_compare_exchange_n(at, &expected, wanted, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
  return expected;
}
ST_FN void st_raise(st_u64* at, st_u64 value) {
  st_u64 now = __atomic_load_n(at, __ATOMIC_RELAXED);
  while (now < value &&
         !__atomic_compare_exchange_n(at, &now, value, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
  }
}
#endif

// An index into the loop that all operands share.
struct Place {
  Index at[kRank];
};
ST_FN Place st_place(const Launch& launch, st_i64 item) {
  Place place;
  Index rest = (Index)item;
#pragma unroll
  for (int axis = kRank - 1; axis > 0; --axis) {
    const Index extent = (Index)launch.extents[axis], next = rest / extent;
    place.at[axis] = rest - next * extent;
    rest = next;
  }
  place.at[0] = rest;
  return place;
}
template <class O>
ST_FN char* st_at(const O& operand, const Place& place) {
  char* address = operand.data;
#pragma unroll
  for (int axis = 0; axis < kRank; ++axis)
    address += (st_i64)place.at[axis] * operand.strides[axis];
  return address;
}
// Number of elements along the operand's own axes, and the offset of an element by its index in C
// order.
template <class O>
ST_FN st_i64 st_own_count(const O& operand) {
  st_i64 count = 1;
  for (int axis = 0; axis < O::kOwn; ++axis) count *= operand.own_extents[axis];
  return count;
}
template <class O>
ST_FN st_i64 st_own_offset(const O& operand, st_i64 number) {
  st_i64 offset = 0;
  Index rest = (Index)number;
#pragma unroll
  for (int axis = O::kOwn - 1; axis > 0; --axis) {
    const Index extent = (Index)operand.own_extents[axis], next = rest / extent;
    offset += (st_i64)(rest - next * extent) * operand.own_strides[axis];
    rest = next;
  }
  return O::kOwn > 0 ? offset + (st_i64)rest * operand.own_strides[0] : 0;
}

template <class A, class B>
struct st_same {
  static constexpr bool value = false;
};
template <class A>
struct st_same<A, A> {
  static constexpr bool value = true;
};
// st_cast, except that the same type keeps all bits.
template <class To, class From>
ST_FN To st_convert(From x) {
  if constexpr (st_same<To, From>::value) {
    return x;
  } else {
    return st_cast<To>(x);
  }
}

#if !ST_CUDA
// Binary searches of `some` values in n elements, interleaved so that their reads overlap.
// further(j, i): value j belongs after element i. low[j]: the resulting position. Reads the same
// elements as
//   while (low < high) middle = low + (high - low) / 2 ...
// so that unsorted elements give the results of a search for one value.
template <int kMost, class Further>
ST_FN void st_bisect_together(int some, st_i64 n, Index* low, const Further& further) {
  Index lengths[kMost];  // high - low
  for (int j = 0; j < some; ++j) low[j] = 0, lengths[j] = (Index)n;
  // Each length is `longest` or one less.
  st_i64 longest = n;
  for (; longest > 1; longest /= 2) {
    for (int j = 0; j < some; ++j) {
      const Index half = lengths[j] / 2, middle = low[j] + half;
      const bool after = further(j, middle);
      low[j] = after ? middle + 1 : low[j];
      lengths[j] = after ? lengths[j] - half - 1 : half;
    }
  }
  const Index last = (Index)(n - 1);
  for (int j = 0; j < some && longest > 0; ++j)
    low[j] += further(j, low[j] < last ? low[j] : last) ? lengths[j] : 0;
}
#endif

// Reports a fault of the request's data (server/worker/codegen/routine_fault.h). The first report
// wins.
enum { kIndexOutOfRange = 1, kWrongCount = 2 };
ST_FN void st_note_fault(const Launch& launch, st_u64 kind, st_i64 value, st_i64 limit) {
  if (st_swap_if((st_u64*)launch.fault, 0, kind) != 0) return;
  launch.fault[1] = value;
  launch.fault[2] = limit;
}
