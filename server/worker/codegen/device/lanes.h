// Many values combined side by side, for reductions on the CPU device. After the headers that all
// targets share. Vectors are spelt out, since compilers make them of some types' loops and not of
// others': the maximum of integers took ten times as long as that of floats.

// The sizes are fixed, so that the order of combination depends on the shape alone.
enum { kLanes = 32, kRun = 512 };

template <class T>
struct st_lanes {
  typedef typename st_stored<T>::type lane;  // of bool, a byte of 0 or 1
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

// Each combines two values as the function of its name does, and all lanes alike.
struct st_adding {
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
};
struct st_multiplying {
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
};
struct st_taking_minimum {
  template <class T>
  ST_FN T values(T a, T b) {
    return st_minimum(a, b);
  }
  template <class T>
  ST_FN auto lanes(typename st_lanes<T>::type a, typename st_lanes<T>::type b) {
    if constexpr (st_traits<T>::kind == ST_FLOAT) {
      return ((a <= b) | (a != a)) ? a : b;
    } else {
      return a <= b ? a : b;
    }
  }
};
struct st_taking_maximum {
  template <class T>
  ST_FN T values(T a, T b) {
    return st_maximum(a, b);
  }
  template <class T>
  ST_FN auto lanes(typename st_lanes<T>::type a, typename st_lanes<T>::type b) {
    if constexpr (st_traits<T>::kind == ST_FLOAT) {
      return ((b <= a) | (a != a)) ? a : b;
    } else {
      return b <= a ? a : b;
    }
  }
};

// Values [0, n): each lane takes every kLanes-th, lane 0 also what is left over.
template <class How, class T>
ST_FN T st_combine_values(const typename st_lanes<T>::lane* values, st_i64 n, T identity) {
  typedef typename st_lanes<T>::type vector;
  T lane[kLanes];
  st_i64 i = 0;
  if (n < kLanes) {
    lane[0] = identity;
    for (; i < n; ++i) lane[0] = How::template values<T>(lane[0], st_from_stored<T>(values[i]));
    return lane[0];
  }
  vector all;
  for (int k = 0; k < kLanes; ++k) all[k] = identity;
  for (; i + kLanes <= n; i += kLanes) {
    vector next;
    ST_BUILTIN(memcpy)(&next, values + i, sizeof(next));
    all = How::template lanes<T>(all, next);
  }
  for (int k = 0; k < kLanes; ++k) lane[k] = st_from_stored<T>(all[k]);
  for (; i < n; ++i) lane[0] = How::template values<T>(lane[0], st_from_stored<T>(values[i]));
  for (int half = kLanes / 2; half > 0; half /= 2) {
    for (int k = 0; k < half; ++k) lane[k] = How::template values<T>(lane[k], lane[k + half]);
  }
  return lane[0];
}

// The first of the n values that is `wanted`, or NaN as it is; it is among them.
template <class T>
ST_FN st_i64 st_find_value(const typename st_lanes<T>::lane* values, st_i64 n, T wanted) {
  if (st_isnan(wanted)) {
    for (st_i64 i = 0; i < n; ++i) {
      if (st_isnan(st_from_stored<T>(values[i]))) return i;
    }
  }
  for (st_i64 i = 0; i < n; ++i) {
    if (st_from_stored<T>(values[i]) == wanted) return i;
  }
  return 0;
}
