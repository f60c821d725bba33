// Combines many values side by side, for reductions on the CPU device. Follows the headers that all
// targets share. Vectors are explicit, since compilers vectorize the loops of some types only: the
// maximum of integers took ten times as long as that of floats.

// The sizes are fixed, so that the order of combination depends only on the shape. Extremes and
// integer sums are equal in any order: their runs are longer, which saves final combinations.
enum { kLanes = 32, kRun = 512 };

template <class T>
struct st_lanes {
  typedef typename st_stored<T>::type lane;  // bool: a byte of 0 or 1
  typedef lane type __attribute__((vector_size(kLanes * sizeof(lane))));
};
// Integers wrap in their unsigned type.
template <class T, bool is_integer>
struct st_wrapping_lanes {
  typedef typename st_lanes<T>::type type;
};
template <class T>
struct st_wrapping_lanes<T, true> {
  typedef typename st_lanes<typename st_traits<T>::as_unsigned>::type type;
};

// Each struct combines two values like st_add and similar functions, in all lanes. No branches, so
// that a compiler can vectorize it.
struct st_adding {
  // Whether the result is equal for any order of values.
  template <class T>
  static constexpr bool kAnyOrder = st_traits<T>::kind == ST_INT || st_traits<T>::kind == ST_BOOL;
  template <class T>
  ST_FN T values(T a, T b) {
    return st_add(a, b);
  }
  template <class T>
  ST_FN auto lanes(typename st_lanes<T>::type a, typename st_lanes<T>::type b) {
    typedef typename st_wrapping_lanes<T, st_traits<T>::kind == ST_INT>::type wrapping;
    if constexpr (st_traits<T>::kind == ST_BOOL) {
      return a | b;
    } else {
      return (typename st_lanes<T>::type)((wrapping)a + (wrapping)b);
    }
  }
  template <class T>
  ST_FN auto numbers(typename st_lanes<T>::type a, typename st_lanes<T>::type b) {
    return lanes<T>(a, b);
  }
};
struct st_multiplying {
  template <class T>
  static constexpr bool kAnyOrder = st_traits<T>::kind == ST_INT || st_traits<T>::kind == ST_BOOL;
  template <class T>
  ST_FN T values(T a, T b) {
    return st_multiply(a, b);
  }
  template <class T>
  ST_FN auto lanes(typename st_lanes<T>::type a, typename st_lanes<T>::type b) {
    typedef typename st_wrapping_lanes<T, st_traits<T>::kind == ST_INT>::type wrapping;
    if constexpr (st_traits<T>::kind == ST_BOOL) {
      return a & b;
    } else {
      return (typename st_lanes<T>::type)((wrapping)a * (wrapping)b);
    }
  }
  template <class T>
  ST_FN auto numbers(typename st_lanes<T>::type a, typename st_lanes<T>::type b) {
    return lanes<T>(a, b);
  }
};
// NaN wins, and of equal values the first.
struct st_taking_minimum {
  template <class T>
  static constexpr bool kAnyOrder = true;
  template <class T>
  ST_FN T values(T a, T b) {
    const T better = b < a ? b : a;
    return st_isnan(b) ? b : better;
  }
  template <class T>
  ST_FN auto lanes(typename st_lanes<T>::type a, typename st_lanes<T>::type b) {
    const typename st_lanes<T>::type better = b < a ? b : a;
    if constexpr (st_traits<T>::kind == ST_FLOAT) {
      return b != b ? b : better;
    } else {
      return better;
    }
  }
  // Keeps a NaN of `a`; a NaN of `b` loses.
  template <class T>
  ST_FN auto numbers(typename st_lanes<T>::type a, typename st_lanes<T>::type b) {
    return b < a ? b : a;
  }
};
struct st_taking_maximum {
  template <class T>
  static constexpr bool kAnyOrder = true;
  template <class T>
  ST_FN T values(T a, T b) {
    const T better = b > a ? b : a;
    return st_isnan(b) ? b : better;
  }
  template <class T>
  ST_FN auto lanes(typename st_lanes<T>::type a, typename st_lanes<T>::type b) {
    const typename st_lanes<T>::type better = b > a ? b : a;
    if constexpr (st_traits<T>::kind == ST_FLOAT) {
      return b != b ? b : better;
    } else {
      return better;
    }
  }
  // Keeps a NaN of `a`; a NaN of `b` loses.
  template <class T>
  ST_FN auto numbers(typename st_lanes<T>::type a, typename st_lanes<T>::type b) {
    return b > a ? b : a;
  }
};

// Combines all lanes with four others, in order.
template <class How, class T>
ST_FN auto st_combine_four(typename st_lanes<T>::type all, typename st_lanes<T>::type a,
                           typename st_lanes<T>::type b, typename st_lanes<T>::type c,
                           typename st_lanes<T>::type d) {
  return How::template lanes<T>(
      How::template lanes<T>(How::template lanes<T>(How::template lanes<T>(all, a), b), c), d);
}
// One instruction per lane vector for numbers, and one test for NaN of all four: with one test
// each, the comparison masks exceed the registers and a column takes twice as long.
template <class How, class T>
ST_FN auto st_take_four(typename st_lanes<T>::type all, typename st_lanes<T>::type a,
                        typename st_lanes<T>::type b, typename st_lanes<T>::type c,
                        typename st_lanes<T>::type d) {
  all = How::template numbers<T>(How::template numbers<T>(all, a), b);
  all = How::template numbers<T>(How::template numbers<T>(all, c), d);
  if constexpr (st_traits<T>::kind == ST_FLOAT) {
    return ((a != a) | (b != b)) | ((c != c) | (d != d)) ? a + b + c + d : all;
  } else {
    return all;
  }
}

// Source of lanes: contiguous values, or products of two such arrays.
template <class T>
struct st_in_place {
  const typename st_lanes<T>::lane* values;
  ST_FN typename st_lanes<T>::type load(const typename st_lanes<T>::lane* from) {
    typename st_lanes<T>::type lanes;
    ST_BUILTIN(memcpy)(&lanes, from, sizeof(lanes));
    if constexpr (st_traits<T>::kind == ST_BOOL)
      lanes = (typename st_lanes<T>::type)(lanes != 0) & 1;
    return lanes;
  }
  __attribute__((always_inline)) typename st_lanes<T>::type lanes(st_i64 i) const {
    return load(values + i);
  }
  __attribute__((always_inline)) T value(st_i64 i) const { return st_from_stored<T>(values[i]); }
};
template <class T>
struct st_products {
  const T *left, *right;
  __attribute__((always_inline)) typename st_lanes<T>::type lanes(st_i64 i) const {
    return st_multiplying::lanes<T>(st_in_place<T>::load(left + i),
                                    st_in_place<T>::load(right + i));
  }
  __attribute__((always_inline)) T value(st_i64 i) const { return st_multiply(left[i], right[i]); }
};

// Distances of values from a pivot, and the squares of these less an offset.
template <class T>
struct st_distances {
  st_in_place<T> from;
  T pivot;
  __attribute__((always_inline)) typename st_lanes<T>::type lanes(st_i64 i) const {
    return from.lanes(i) - pivot;
  }
  __attribute__((always_inline)) T value(st_i64 i) const { return from.value(i) - pivot; }
};
template <class T>
struct st_squared_distances {
  st_distances<T> from;
  T offset;
  __attribute__((always_inline)) typename st_lanes<T>::type lanes(st_i64 i) const {
    const typename st_lanes<T>::type rest = from.lanes(i) - offset;
    return rest * rest;
  }
  __attribute__((always_inline)) T value(st_i64 i) const {
    const T rest = from.value(i) - offset;
    return rest * rest;
  }
};

// Whether a comparison holds in some lane.
template <class Mask>
ST_FN bool st_any(Mask mask) {
#if __has_builtin(__builtin_reduce_or)
  return __builtin_reduce_or(mask) != 0;
#else
  bool some = false;
  for (int k = 0; k < kLanes; ++k) some |= mask[k] != 0;
  return some;
#endif
}

// The extreme of `all` and of values [0, i) without NaN; returns i, the first value not handled.
// Each step handles 256 bytes of values in independent chains, to hide the latency of one chain.
template <class How, class T, class Source>
ST_FN st_i64 st_take_ahead(const Source& source, st_i64 n, typename st_lanes<T>::type& all) {
  constexpr int kChains =
      sizeof(typename st_lanes<T>::lane) < 8 ? 8 / sizeof(typename st_lanes<T>::lane) : 1;
  typename st_lanes<T>::type chain[kChains], next[kChains];
  for (int k = 0; k < kChains; ++k) chain[k] = all;
  st_i64 i = 0;
  for (; i + kChains * kLanes <= n; i += kChains * kLanes) {
    for (int k = 0; k < kChains; ++k) next[k] = source.lanes(i + k * kLanes);
    if constexpr (st_traits<T>::kind == ST_FLOAT) {
      auto nan = next[0] != next[0];
      for (int k = 1; k < kChains; ++k) nan |= next[k] != next[k];
      if (st_any(nan)) break;
    }
    for (int k = 0; k < kChains; ++k) chain[k] = How::template numbers<T>(chain[k], next[k]);
  }
  all = chain[0];
  for (int k = 1; k < kChains; ++k) all = How::template numbers<T>(all, chain[k]);
  return i;
}

// Values [0, n): each lane combines every kLanes-th, lane 0 also the remainder.
template <class How, class T, class Source>
ST_FN T st_combine_values(const Source& source, st_i64 n, T identity) {
  typename st_lanes<T>::type all;
  for (int k = 0; k < kLanes; ++k) all[k] = identity;
  st_i64 i = 0;
  if constexpr (How::template kAnyOrder<T>) i = st_take_ahead<How, T>(source, n, all);
  for (; i + kLanes <= n; i += kLanes) all = How::template lanes<T>(all, source.lanes(i));
  T lane[kLanes];
  for (int k = 0; k < kLanes; ++k) lane[k] = st_from_stored<T>(all[k]);
  for (; i < n; ++i) lane[0] = How::template values<T>(lane[0], source.value(i));
  for (int half = kLanes / 2; half > 0; half /= 2) {
    for (int k = 0; k < half; ++k) lane[k] = How::template values<T>(lane[k], lane[k + half]);
  }
  return lane[0];
}

// Column by column, each total with one value of each of four rows.
template <class How, bool extremes, class T>
ST_FN void st_combine_rows(T* totals, const T* a, const T* b, const T* c, const T* d, st_i64 n) {
  typedef st_in_place<T> in_place;
  st_i64 j = 0;
  for (; j + kLanes <= n; j += kLanes) {
    typename st_lanes<T>::type all = in_place::load(totals + j);
    const typename st_lanes<T>::type next_a = in_place::load(a + j), next_b = in_place::load(b + j),
                                     next_c = in_place::load(c + j), next_d = in_place::load(d + j);
    if constexpr (extremes) {
      all = st_take_four<How, T>(all, next_a, next_b, next_c, next_d);
    } else {
      all = st_combine_four<How, T>(all, next_a, next_b, next_c, next_d);
    }
    ST_BUILTIN(memcpy)(totals + j, &all, sizeof(all));
  }
  for (; j < n; ++j) {
    T total = How::template values<T>(How::template values<T>(totals[j], a[j]), b[j]);
    totals[j] = How::template values<T>(How::template values<T>(total, c[j]), d[j]);
  }
}

// Index of the first of the n values that equals `wanted` (for NaN: is NaN). It must exist.
template <class T>
ST_FN st_i64 st_find_value(const st_in_place<T>& source, st_i64 n, T wanted) {
  if (st_isnan(wanted)) {
    for (st_i64 i = 0; i < n; ++i) {
      if (st_isnan(source.value(i))) return i;
    }
  }
  typename st_lanes<T>::type lanes;
  for (int k = 0; k < kLanes; ++k) lanes[k] = wanted;
  st_i64 i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    if (st_any(source.lanes(i) == lanes)) break;
  }
  for (; i < n; ++i) {
    if (source.value(i) == wanted) return i;
  }
  return 0;
}
