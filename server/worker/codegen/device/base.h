// Types, traits, loads, stores and conversions. First of the device headers. The generated text
// contains them one after another, so none has an #include. The emitter defines ST_CUDA as 1 or 0
// before this text.

#if ST_CUDA
#define ST_FN __device__ __forceinline__
#define ST_BUILTIN(name) name
#else
#if defined(__CUDA__)
// Clang's CUDA front end, with the host as target: everything is device code.
#define ST_FN static inline __attribute__((device, always_inline))
#define ST_ENTRY extern "C" __attribute__((device, used, visibility("default")))
#else
#define ST_FN static inline __attribute__((always_inline))
#define ST_ENTRY extern "C" __attribute__((used, visibility("default")))
#endif
// Functions of single instructions are never calls, whatever the prelude declares.
#define ST_BUILTIN(name) __builtin_##name
#if defined(__clang__)
#define ST_IVDEP _Pragma("clang loop vectorize(assume_safety)")
#else
#define ST_IVDEP _Pragma("GCC ivdep")
#endif
#endif

typedef signed char st_i8;
typedef unsigned char st_u8;
typedef short st_i16;
typedef unsigned short st_u16;
typedef int st_i32;
typedef unsigned int st_u32;
typedef long long st_i64;
typedef unsigned long long st_u64;

#if ST_CUDA
// EndMark in launch_abi.h.
struct st_end_mark {
  st_u32* word;
  st_u32* arrivals;
  st_u32 value;
};
// Signals the end of a launch. All threads of a block call this after their last store; all
// `blocks` of the grid do. The barrier orders the stores of the block's threads, and the counter
// those of other blocks. The fences are cumulative, so an observer of the mark sees all stores.
ST_FN void st_tell_end(const st_end_mark& mark, st_u32 blocks) {
  if (mark.word == 0) return;
  __syncthreads();
  if (threadIdx.x + threadIdx.y != 0) return;
  if (blocks > 1) {
    __threadfence();
    if (atomicAdd(mark.arrivals, 1u) != blocks - 1) return;
    *mark.arrivals = 0;
  }
  __threadfence_system();
  *(volatile st_u32*)mark.word = mark.value;
}
#endif

struct st_f16 {
  st_u16 bits;
};
struct st_bf16 {
  st_u16 bits;
};
template <class T>
struct st_complex {
  T re, im;
};
typedef st_complex<float> st_c64;
typedef st_complex<double> st_c128;

// Properties of a type: `kind`, and for integers the unsigned type in which arithmetic wraps.
enum st_kind { ST_BOOL, ST_INT, ST_FLOAT, ST_COMPLEX, ST_HALF };
template <class T>
struct st_traits;
#define ST_INTEGER(type, unsigned_type, wide_type, is_signed_value)         \
  template <>                                                               \
  struct st_traits<type> {                                                  \
    static constexpr st_kind kind = ST_INT;                                 \
    static constexpr bool is_signed = is_signed_value;                      \
    static constexpr int bits = 8 * sizeof(type);                           \
    typedef unsigned_type as_unsigned;                                      \
    typedef wide_type wide;                                                 \
    static constexpr type lowest =                                          \
        is_signed_value ? (type)((unsigned_type)1 << (bits - 1)) : (type)0; \
    static constexpr type highest = (type)~lowest;                          \
  };
ST_INTEGER(st_i8, st_u8, st_u32, true)
ST_INTEGER(st_i16, st_u16, st_u32, true)
ST_INTEGER(st_i32, st_u32, st_u32, true)
ST_INTEGER(st_i64, st_u64, st_u64, true)
ST_INTEGER(st_u8, st_u8, st_u32, false)
ST_INTEGER(st_u16, st_u16, st_u32, false)
ST_INTEGER(st_u32, st_u32, st_u32, false)
ST_INTEGER(st_u64, st_u64, st_u64, false)
template <>
struct st_traits<bool> {
  static constexpr st_kind kind = ST_BOOL;
  static constexpr bool lowest = false, highest = true;
};
template <>
struct st_traits<float> {
  static constexpr st_kind kind = ST_FLOAT;
};
template <>
struct st_traits<double> {
  static constexpr st_kind kind = ST_FLOAT;
};
template <>
struct st_traits<st_f16> {
  static constexpr st_kind kind = ST_HALF;
};
template <>
struct st_traits<st_bf16> {
  static constexpr st_kind kind = ST_HALF;
};
template <>
struct st_traits<st_c64> {
  static constexpr st_kind kind = ST_COMPLEX;
};
template <>
struct st_traits<st_c128> {
  static constexpr st_kind kind = ST_COMPLEX;
};

// A value's type in memory: bool is a byte, and any nonzero byte counts as true.
template <class T>
struct st_stored {
  typedef T type;
};
template <>
struct st_stored<bool> {
  typedef st_u8 type;
};
template <class T>
ST_FN T st_from_stored(typename st_stored<T>::type x) {
  if constexpr (st_traits<T>::kind == ST_BOOL) {
    return x != 0;
  } else {
    return x;
  }
}
template <class T>
ST_FN T st_load(const void* address) {
  return st_from_stored<T>(*(const typename st_stored<T>::type*)address);
}
template <class T>
ST_FN void st_store(void* address, T value) {
  *(typename st_stored<T>::type*)address = value;
}

#if ST_CUDA
ST_FN st_u32 st_bits(float x) { return __float_as_uint(x); }
ST_FN st_u64 st_bits(double x) { return (st_u64)__double_as_longlong(x); }
ST_FN float st_float_of(st_u32 bits) { return __uint_as_float(bits); }
ST_FN double st_double_of(st_u64 bits) { return __longlong_as_double((st_i64)bits); }
#else
ST_FN st_u32 st_bits(float x) {
  st_u32 bits;
  ST_BUILTIN(memcpy)(&bits, &x, 4);
  return bits;
}
ST_FN st_u64 st_bits(double x) {
  st_u64 bits;
  ST_BUILTIN(memcpy)(&bits, &x, 8);
  return bits;
}
ST_FN float st_float_of(st_u32 bits) {
  float x;
  ST_BUILTIN(memcpy)(&x, &bits, 4);
  return x;
}
ST_FN double st_double_of(st_u64 bits) {
  double x;
  ST_BUILTIN(memcpy)(&x, &bits, 8);
  return x;
}
#endif
ST_FN float st_infinity_of(float) { return st_float_of(0x7F800000u); }
ST_FN double st_infinity_of(double) { return st_double_of(0x7FF0000000000000ull); }
ST_FN float st_nan_of(float) { return st_float_of(0x7FC00000u); }
ST_FN double st_nan_of(double) { return st_double_of(0x7FF8000000000000ull); }

// --- 16-bit floats ---

ST_FN float st_to_float(st_bf16 x) { return st_float_of((st_u32)x.bits << 16); }
ST_FN float st_to_float(st_f16 x) {
#if ST_CUDA
  float result;
  asm("{cvt.f32.f16 %0, %1;}" : "=f"(result) : "h"(x.bits));
  return result;
#else
  st_u32 sign = (st_u32)(x.bits & 0x8000u) << 16;
  st_u32 magnitude = x.bits & 0x7FFFu;
  // Normal: shift and rebias. Subnormal: the multiplication normalizes it.
  float scaled = st_float_of(magnitude << 13) * 0x1p112f;
  st_u32 bits = magnitude >= 0x7C00u ? (magnitude << 13) | 0x7F800000u : st_bits(scaled);
  return st_float_of(bits | sign);
#endif
}
// Rounds a double to 24 bits with a sticky last bit, so that rounding again equals one
// rounding.
ST_FN float st_round_to_odd(double x) {
  float nearest = (float)x;
  double back = (double)nearest;
  st_u32 bits = st_bits(nearest);
  bool exact = back == x || x != x;
  // The neighbour towards zero, when the nearest float lies beyond x.
  bool beyond = (back < 0 ? -back : back) > (x < 0 ? -x : x);
  st_u32 truncated = beyond ? bits - 1 : bits;
  return st_float_of(exact ? bits : truncated | 1u);
}
ST_FN st_bf16 st_to_bf16(float x) {
  st_u32 bits = st_bits(x);
  st_u32 rounded = (bits + 0x7FFFu + ((bits >> 16) & 1u)) >> 16;
  return st_bf16{(st_u16)(x != x ? (bits >> 16) | 0x40u : rounded)};
}
ST_FN st_f16 st_to_f16(float x) {
#if ST_CUDA
  st_f16 result;
  asm("{cvt.rn.f16.f32 %0, %1;}" : "=h"(result.bits) : "f"(x));
  return result;
#else
  st_u32 bits = st_bits(x);
  st_u32 sign = (bits >> 16) & 0x8000u;
  st_u32 magnitude = bits & 0x7FFFFFFFu;
  // Normal results: rebias and round to nearest even by integer addition; a carry goes into the
  // exponent.
  st_u32 normal = (magnitude - 0x38000000u + 0xFFFu + ((magnitude >> 13) & 1u)) >> 13;
  // Subnormal results: adding 0.5 puts the last kept bit at the float's last place, and the
  // hardware rounds.
  st_u32 subnormal = st_bits(st_float_of(magnitude) + 0.5f) - 0x3F000000u;
  st_u32 finite = magnitude < 0x38800000u ? subnormal : normal;
  st_u32 result = magnitude >= 0x477FF000u ? (magnitude > 0x7F800000u ? 0x7E00u : 0x7C00u) : finite;
  return st_f16{(st_u16)(result | sign)};
#endif
}

ST_FN st_f16 st_half_of(float x, const st_f16*) { return st_to_f16(x); }
ST_FN st_bf16 st_half_of(float x, const st_bf16*) { return st_to_bf16(x); }

// Converts the complex number that a client's function returned: any type with x and y.
template <class To, class From>
ST_FN To st_from_client(From x) {
  return To{(decltype(To::re))x.x, (decltype(To::re))x.y};
}

// --- conversions, as in C; float to integer as x86 does where C leaves it undefined ---

template <class F>
ST_FN st_i32 st_to_i32(F x) {
  return x > (F)-2147483904.0 && x < (F)2147483648.0 && (double)x > -2147483649.0
             ? (st_i32)x
             : (st_i32)0x80000000u;
}
template <class F>
ST_FN st_i64 st_to_i64(F x) {
  return x >= (F)-9223372036854775808.0 && x < (F)9223372036854775808.0
             ? (st_i64)x
             : (st_i64)0x8000000000000000ull;
}
template <class F>
ST_FN st_u64 st_to_u64(F x) {
  const F half = (F)9223372036854775808.0;
  return x >= half && x < half * 2 ? (st_u64)(st_i64)(x - half) ^ 0x8000000000000000ull
                                   : (st_u64)st_to_i64(x);
}

template <class To, class From>
ST_FN To st_cast(From x) {
  constexpr st_kind from = st_traits<From>::kind, to = st_traits<To>::kind;
  if constexpr (from == ST_HALF) {
    return st_cast<To>(st_to_float(x));
  } else if constexpr (from == ST_COMPLEX && to == ST_COMPLEX) {
    return To{st_cast<decltype(To::re)>(x.re), st_cast<decltype(To::re)>(x.im)};
  } else if constexpr (from == ST_COMPLEX && to == ST_BOOL) {
    return x.re != 0 || x.im != 0;
  } else if constexpr (from == ST_COMPLEX) {
    return st_cast<To>(x.re);
  } else if constexpr (to == ST_COMPLEX) {
    return To{st_cast<decltype(To::re)>(x), 0};
  } else if constexpr (to == ST_BOOL) {
    return x != 0;
  } else if constexpr (to == ST_HALF) {
    float single;
    if constexpr (sizeof(From) > 4 || (from == ST_INT && sizeof(From) == 4)) {
      single = st_round_to_odd((double)x);
    } else {
      single = (float)x;
    }
    return st_half_of(single, (const To*)0);
  } else if constexpr (from == ST_FLOAT && to == ST_INT) {
    if constexpr (sizeof(To) < 4 || (sizeof(To) == 4 && st_traits<To>::is_signed)) {
      return (To)st_to_i32(x);
    } else if constexpr (sizeof(To) == 8 && !st_traits<To>::is_signed) {
      return st_to_u64(x);
    } else {
      return (To)st_to_i64(x);
    }
  } else {
    return (To)x;
  }
}
