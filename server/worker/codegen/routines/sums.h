// at.h on a GPU for functions that add or subtract (option 3: 1, 2), by exact sums, so that atomics
// may add in any order. Each of pass[2] targets has pass[1] slots. A slot is a word of 64 bits for
// integers. For floats it is a fixed-point number of 128 bits in units of the least value's last
// bit, and flags; the sum is rounded once and then added to the element. The emitter numbers the
// phases: sums_clear, an item per word; sums_range, an item per part of pass[3] values, finds the
// exponents; sums_add; sums_join, an item per target with several slots, sums them into the first;
// sums_write, an item per target. pass[0]: offset of the slots in the scratch memory. Floats whose
// exponents are too far apart are left to the sort's phases (sums_fit).
constexpr bool kSumsFloats = st_traits<Program0>::kind == ST_FLOAT;
constexpr int kMantissa = sizeof(Program0) > 4 ? 53 : 24;  // bits, including the hidden one
enum { kSawNaN = 1, kSawInfinity = 2, kSawMinusInfinity = 4, kSawZero = 8 };

// A float as sign, magnitude and exponent: magnitude * 2^(exponent - bias), exponent >= 1.
struct SumsParts {
  st_u64 magnitude;
  int exponent;
  bool negative, finite;
};
ST_FN SumsParts sums_parts(float x) {
  const st_u32 bits = st_bits(x), field = bits >> 23 & 255, low = bits & 0x7FFFFF;
  return SumsParts{field == 0 ? low : low | 0x800000u, field == 0 ? 1 : (int)field, bits >> 31 != 0,
                   field != 255};
}
ST_FN SumsParts sums_parts(double x) {
  const st_u64 bits = st_bits(x), field = bits >> 52 & 2047, low = bits & 0xFFFFFFFFFFFFFull;
  return SumsParts{field == 0 ? low : low | 1ull << 52, field == 0 ? 1 : (int)field,
                   bits >> 63 != 0, field != 2047};
}
template <class T>
ST_FN SumsParts sums_parts(T) {
  return SumsParts{};
}
ST_FN Program0 sums_value(const Launch& launch, const Place& place) {
  const Program0 value = value_at<kOption2>(launch, place);
  return kOption3 == 2 ? (Program0)-value : value;
}

// The low words of all slots, their high words, and their flags, two per word.
struct SumsMemory {
  st_u64 *low, *high;
  st_u32* flags;
};
ST_FN SumsMemory sums_memory(const Launch& launch) {
  const st_i64 slots = launch.pass[1] * launch.pass[2];
  SumsMemory memory;
  memory.low = (st_u64*)(launch.scratch + launch.pass[0]);
  memory.high = memory.low + slots;
  memory.flags = (st_u32*)(memory.high + slots);
  return memory;
}
// The exponents of finite values that are not zero: the greatest one, and 4096 less the least one;
// 0, 0: there is no such value. They are where faults are, since that memory is zero at the start,
// and so is a word that says whether there are slots.
ST_FN st_u64* sums_exponents(const Launch& launch) { return (st_u64*)launch.fault + 6; }
ST_FN st_i64& sums_begun(const Launch& launch) { return launch.fault[5]; }

// A slot's low word begins in the middle, so that few sums of either sign carry.
constexpr st_u64 kSumsBias = kSumsFloats ? 1ull << 63 : 0;
ST_FN void sums_clear(const Launch& launch, st_i64 item) {
  if (item == 0) sums_begun(launch) = 1;
  sums_memory(launch).low[item] = item < launch.pass[1] * launch.pass[2] ? kSumsBias : 0;
}

ST_FN void sums_range(const Launch& launch, st_i64 item) {
  __shared__ int greatest, least;
  if (ST_THREAD == 0) greatest = least = 0;
  ST_SYNC();
  const st_i64 begin = item * launch.pass[3], limit = begin + launch.pass[3];
  const st_i64 count = kOption2 == 1 ? 1 : launch.count, end = limit < count ? limit : count;
  int above = 0, below = 0;
#pragma unroll 4
  for (st_i64 i = begin + ST_THREAD; i < end; i += ST_THREADS) {
    const SumsParts parts = sums_parts(sums_value(launch, st_place(launch, i)));
    if (!parts.finite || parts.magnitude == 0) continue;
    above = parts.exponent > above ? parts.exponent : above;
    below = 4096 - parts.exponent > below ? 4096 - parts.exponent : below;
  }
  above = __reduce_max_sync(~0u, above);
  below = __reduce_max_sync(~0u, below);
  if (ST_THREAD % 32 == 0) {
    atomicMax(&greatest, above);
    atomicMax(&least, below);
  }
  ST_SYNC();
  if (ST_THREAD == 0 && greatest != 0) {
    st_raise(sums_exponents(launch), (st_u64)greatest);
    st_raise(sums_exponents(launch) + 1, (st_u64)least);
  }
}

// Whether all values, and the sums of this many values, fit a slot.
ST_FN bool sums_fit(const Launch& launch) {
  const st_u64* const exponents = sums_exponents(launch);
  if (sums_begun(launch) == 0) return false;
  if (!kSumsFloats || exponents[0] == 0) return true;
  const int spread = (int)exponents[0] + (int)exponents[1] - 4096;
  return spread + kMantissa + (64 - __clzll(launch.count)) <= 126;
}
ST_FN void sums_add_float(const Launch& launch, const SumsMemory& memory, st_i64 slot,
                          Program0 value) {
  const SumsParts parts = sums_parts(value);
  if (!parts.finite || parts.magnitude == 0) {
    const st_u32 flag = !parts.finite    ? value != value   ? kSawNaN
                                           : parts.negative ? kSawMinusInfinity
                                                            : kSawInfinity
                        : parts.negative ? 0
                                         : kSawZero;
    if ((*(volatile st_u32*)(memory.flags + slot) & flag) != flag)
      atomicOr(memory.flags + slot, flag);
    return;
  }
  const int shift = parts.exponent + (int)sums_exponents(launch)[1] - 4096;
  st_u64 low = shift < 64 ? parts.magnitude << shift : 0;
  st_u64 high = shift == 0   ? 0
                : shift < 64 ? parts.magnitude >> (64 - shift)
                             : parts.magnitude << (shift - 64);
  if (parts.negative) {
    high = ~high + (low == 0 ? 1 : 0);
    low = ~low + 1;
  }
  const st_u64 before = low == 0 ? 0 : atomicAdd(memory.low + slot, low);
  high += before + low < before ? 1 : 0;
  if (high != 0) atomicAdd(memory.high + slot, high);
}
ST_FN void sums_add(const Launch& launch, st_i64 item) {
  const Place place = st_place(launch, item);
  Target target;
  if (!st_target(launch, launch.ST_LAST, place, &target)) return;
  const SumsMemory memory = sums_memory(launch);
  if (!sums_fit(launch)) return;
  st_u64 among, elsewhere;
  st_split(launch, place, &among, &elsewhere);
  const st_i64 key = (st_i64)(elsewhere * (st_u64)st_own_count(launch.ST_LAST) + target.number);
  // Neighbouring warps add to different copies.
  const st_i64 copy = item / 32 & (launch.pass[1] - 1), slot = copy * launch.pass[2] + key;
  const Program0 value = sums_value(launch, place);
  if constexpr (kSumsFloats) {
    sums_add_float(launch, memory, slot, value);
  } else {
    atomicAdd(memory.low + slot, (st_u64)(st_i64)value);
  }
}

// A slot's number without its bias, and its flags.
struct SumsSlot {
  st_u64 low, high;
  st_u32 flags;
};
ST_FN SumsSlot sums_slot(const SumsMemory& memory, st_i64 slot) {
  const st_u64 low = memory.low[slot];
  if constexpr (!kSumsFloats) return SumsSlot{low, 0, 0};
  const st_u64 high = memory.high[slot] - (low < kSumsBias ? 1 : 0);
  return SumsSlot{low - kSumsBias, high, memory.flags[slot]};
}
ST_FN void sums_join(const Launch& launch, st_i64 item) {
  __shared__ SumsSlot sums[ST_THREADS];
  if (!sums_fit(launch)) return;
  const SumsMemory memory = sums_memory(launch);
  SumsSlot sum = {};
  auto add = [&sum](const SumsSlot& slot) {
    sum.low += slot.low;
    sum.high += slot.high + (sum.low < slot.low ? 1 : 0);
    sum.flags |= slot.flags;
  };
  for (st_i64 copy = ST_THREAD; copy < launch.pass[1]; copy += ST_THREADS)
    add(sums_slot(memory, copy * launch.pass[2] + item));
  sums[ST_THREAD] = sum;
  for (int half = ST_THREADS / 2; half > 0; half /= 2) {
    ST_SYNC();
    if (ST_THREAD >= half) continue;
    add(sums[ST_THREAD + half]);
    sums[ST_THREAD] = sum;
  }
  if (ST_THREAD != 0) return;
  memory.low[item] = sum.low + kSumsBias;
  if constexpr (kSumsFloats) {
    memory.high[item] = sum.high + (sum.low + kSumsBias < kSumsBias ? 1 : 0);
    memory.flags[item] = sum.flags;
  }
}

ST_FN float sums_scaled(float x, int exponent) { return scalbnf(x, exponent); }
ST_FN double sums_scaled(double x, int exponent) { return scalbn(x, exponent); }
template <class T>
ST_FN T sums_scaled(T x, int) {
  return x;
}
// A sum in a slot's units, rounded once: bits below a word count as its last bit, which is far
// below a mantissa's.
template <class T>
ST_FN T sums_rounded(st_u64 low, st_u64 high, int least) {
  const bool negative = (st_i64)high < 0;
  if (negative) {
    high = ~high + (low == 0 ? 1 : 0);
    low = ~low + 1;
  }
  int exponent = least - (sizeof(T) > 4 ? 1075 : 150);
  if (high != 0) {
    const int shift = 64 - __clzll((st_i64)high);
    const st_u64 lost = shift == 64 ? low : low & ((1ull << shift) - 1);
    low = (shift == 64 ? high : low >> shift | high << (64 - shift)) | (lost != 0 ? 1 : 0);
    exponent += shift;
  }
  const T magnitude = sums_scaled((T)low, exponent);
  return negative ? -magnitude : magnitude;
}

// Adds the values that a slot's words cannot represent (infinities and NaN).
template <class T>
ST_FN T sums_flagged(T sum, st_u32 flags) {
  if constexpr (st_traits<T>::kind == ST_FLOAT) {
    const bool above = (flags & kSawInfinity) != 0, below = (flags & kSawMinusInfinity) != 0;
    if ((flags & kSawNaN) != 0 || (above && below)) return st_nan_of(sum);
    if (above || below) return above ? st_infinity_of(sum) : -st_infinity_of(sum);
  }
  return sum;
}

ST_FN void sums_write(const Launch& launch, st_i64 item) {
  if (launch.fault[0] != 0) return;
  const SumsMemory memory = sums_memory(launch);
  if (!sums_fit(launch)) return;
  const st_i64 own = st_own_count(launch.ST_LAST);
  const Place place = st_place_of(launch, 0, (st_u64)(item / own));
  char* const at = st_at(launch.ST_LAST, place) + st_own_offset(launch.ST_LAST, item % own);
  const SumsSlot sum = sums_slot(memory, item);
  if ((sum.low | sum.high | sum.flags) == 0) return;
  if constexpr (kSumsFloats) {
    const int least = 4096 - (int)sums_exponents(launch)[1];
    const Program0 rounded = sums_rounded<Program0>(sum.low, sum.high, least);
    st_store<TLast>(at,
                    run3((Program0)(run1(st_load<TLast>(at)) + sums_flagged(rounded, sum.flags))));
  } else {
    st_store<TLast>(at, run3((Program0)(run1(st_load<TLast>(at)) + (Program0)(st_i64)sum.low)));
  }
}
