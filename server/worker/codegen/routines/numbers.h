// Elements as unsigned numbers in the order of sort.h, which precedes this text: both zeros are one
// number, and all NaN are one after all others, in either direction. Complex numbers have no key.
constexpr int kRadixKeyBits = sizeof(st_stored<T0>::type) > 8
                                  ? 64
                                  : 8 * (int)sizeof(st_stored<T0>::type);

template <bool kWide>
struct RadixKeyOf {
  typedef st_u32 type;
};
template <>
struct RadixKeyOf<true> {
  typedef st_u64 type;
};
typedef RadixKeyOf<(sizeof(T0) > 4)>::type RadixKey;
ST_FN RadixKey radix_infinity(st_f16) { return 0x7C00; }
ST_FN RadixKey radix_infinity(st_bf16) { return 0x7F80; }
template <class T>
ST_FN RadixKey radix_infinity(T) {
  return (RadixKey)st_bits(st_infinity_of((T)0));
}
ST_FN RadixKey radix_bits(st_f16 x) { return x.bits; }
ST_FN RadixKey radix_bits(st_bf16 x) { return x.bits; }
template <class T>
ST_FN RadixKey radix_bits(T x) {
  return (RadixKey)st_bits(x);
}
template <class T>
ST_FN RadixKey radix_key(T x, bool descending) {
  constexpr st_kind kind = st_traits<T>::kind;
  constexpr RadixKey sign = (RadixKey)1 << (kRadixKeyBits - 1), all = sign | (sign - 1);
  RadixKey key = 0;
  if constexpr (kind == ST_BOOL) {
    key = x ? all : 0;
  } else if constexpr (kind == ST_INT) {
    key = (RadixKey)(typename st_traits<T>::as_unsigned)x ^ (st_traits<T>::is_signed ? sign : 0);
  } else {
    const RadixKey bits = radix_bits(x), magnitude = bits & ~sign;
    if (magnitude > radix_infinity(T())) return all;
    key = magnitude == 0 ? sign : bits & sign ? bits ^ all : bits | sign;
  }
  return descending ? key ^ all : key;
}
// Like radix_key, but -0 comes before +0, so that the element can be recomputed from its key, and
// true is 1. Ascending.
template <class T>
ST_FN RadixKey plain_key(T x) {
  constexpr st_kind kind = st_traits<T>::kind;
  if constexpr (kind == ST_COMPLEX) {
    return 0;
  } else if constexpr (kind == ST_BOOL) {
    return x ? 1 : 0;
  } else if constexpr (kind == ST_INT) {
    return radix_key(x, false);
  } else {
    constexpr RadixKey sign = (RadixKey)1 << (kRadixKeyBits - 1), all = sign | (sign - 1);
    const RadixKey bits = radix_bits(x), key = bits & sign ? bits ^ all : bits | sign;
    return (bits & ~sign) > radix_infinity(T()) ? all : key;
  }
}
