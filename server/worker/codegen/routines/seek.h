// Finds elements by their rank in a row without a sort, digit by digit of their keys, from the
// highest. Elements whose keys begin with the digits found so far are counted by the next digit,
// and the counts determine the wanted element's digit. Follows ranking.h. Its user defines
//   num_ranks(launch)                  at most kMostRanks
//   rank_of(launch, number, j)         of row `number`, in [0, n)
//   found(launch, number, j, value)    receives the element of that rank
// Pass 3 finds all ranks of a row by one block. Few long rows instead have these passes: 4 begins;
// then for each digit, pass[2], 5 counts chunks of pass[0] elements (a row has pass[1] chunks), and
// 6 chooses. After a row's last digit its seeks, in half kDigits % 2, have complete keys as
// prefixes. The passes of a processor are bins.h's, those of a GPU narrow.h's.
ST_FN int num_ranks(const Launch& launch);
ST_FN st_i64 rank_of(const Launch& launch, st_i64 number, int j);
ST_FN void found(const Launch& launch, st_i64 number, int j, T0 value);

// kMostRanks and kSeekBits in order_shape.cc. The first digit of all ranks is counted
// together, so that it can be longer.
constexpr int kMostRanks = kTop ? 1 : 8;
constexpr int kDigitBits = ST_CUDA ? 10 : 11, kFirstBits = ST_CUDA ? 12 : kDigitBits;
constexpr int kBins = 1 << kDigitBits;
// Complex numbers have no key of 64 bits; they are sorted.
constexpr int kKeyBits = sizeof(typename st_stored<T0>::type) > 8
                             ? 64
                             : 8 * (int)sizeof(typename st_stored<T0>::type);
constexpr int kDigits =
    kKeyBits <= kFirstBits ? 1 : 1 + (kKeyBits - kFirstBits + kDigitBits - 1) / kDigitBits;

// Unsigned numbers in the elements' order: NaN last, all of them equal.
template <class T>
ST_FN st_u64 key_of(T x) {
  constexpr st_kind kind = st_traits<T>::kind;
  constexpr st_u64 sign = (st_u64)1 << (kKeyBits - 1), all = sign | (sign - 1);
  if constexpr (kind == ST_BOOL) {
    return x ? 1 : 0;
  } else if constexpr (kind == ST_INT) {
    const st_u64 bits = (st_u64)(typename st_traits<T>::as_unsigned)x;
    return st_traits<T>::is_signed ? bits ^ sign : bits;
  } else if constexpr (kind == ST_FLOAT) {
    const st_u64 bits = st_bits(x);
    return x != x ? all : bits & sign ? bits ^ all : bits | sign;
  } else if constexpr (kind == ST_HALF) {
    const float wide = st_to_float(x);
    const st_u64 bits = x.bits;
    return wide != wide ? all : bits & sign ? bits ^ all : bits | sign;
  } else {
    return 0;
  }
}
ST_FN float float_of_bits(st_u64 bits, const float*) { return st_float_of((st_u32)bits); }
ST_FN double float_of_bits(st_u64 bits, const double*) { return st_double_of(bits); }
template <class T>
ST_FN T value_of(st_u64 key) {
  constexpr st_kind kind = st_traits<T>::kind;
  constexpr st_u64 sign = (st_u64)1 << (kKeyBits - 1), all = sign | (sign - 1);
  if constexpr (kind == ST_BOOL) {
    return key != 0;
  } else if constexpr (kind == ST_INT) {
    return (T)(typename st_traits<T>::as_unsigned)(st_traits<T>::is_signed ? key ^ sign : key);
  } else if constexpr (kind == ST_FLOAT) {
    if (key == all) return st_nan_of((T)0);
    return float_of_bits(key & sign ? key ^ sign : key ^ all, (const T*)nullptr);
  } else if constexpr (kind == ST_HALF) {
    if (key == all) return st_half_of(st_nan_of(0.0f), (const T*)nullptr);
    return T{(st_u16)(key & sign ? key ^ sign : key ^ all)};
  } else {
    return T();
  }
}

// The last digit has the bits that are left.
ST_FN int shift_of(int digit) {
  const int shift = kKeyBits - kFirstBits - digit * kDigitBits;
  return shift > 0 ? shift : 0;
}
ST_FN int width_of(int digit) {
  return digit == 0 ? kKeyBits - shift_of(0) : shift_of(digit - 1) - shift_of(digit);
}
ST_FN int bins_of(int digit) { return 1 << width_of(digit); }
ST_FN int digit_of(st_u64 key, int digit) {
  return (int)(key >> shift_of(digit)) & (bins_of(digit) - 1);
}
ST_FN st_u64 prefix_of(st_u64 key, int digit) {
  return digit == 0 ? 0 : key >> shift_of(digit - 1);
}
ST_FN st_u64 key_at(const Launch& launch, const char* row, st_i64 i) {
  return key_of(st_load<T0>(row + i * launch.operand0.own_strides[0]));
}

// One rank's search: the digits found, and its rank among the elements that begin with them.
struct Seek {
  st_u64 prefix, left;
};
ST_FN Seek begin_seek(const Launch& launch, st_i64 number, int j) {
  return Seek{0, (st_u64)rank_of(launch, number, j)};
}
// The different prefixes; ranks that share one count together.
struct Wanted {
  int num, slots[kMostRanks];
  st_u64 prefixes[kMostRanks];
};
ST_FN void find_wanted(const Seek* seeks, int count, Wanted* wanted) {
  wanted->num = 0;
  for (int j = 0; j < count; ++j) {
    int k = 0;
    while (k < wanted->num && wanted->prefixes[k] != seeks[j].prefix) ++k;
    if (k == wanted->num) wanted->prefixes[wanted->num++] = seeks[j].prefix;
    wanted->slots[j] = k;
  }
}
