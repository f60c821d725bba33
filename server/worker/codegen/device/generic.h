// Operations that choose by kind between the integer, float and complex functions. Last of the
// device headers.

#define ST_BY_KIND2(op)                                    \
  template <class T>                                       \
  ST_FN T st_##op(T a, T b) {                              \
    if constexpr (st_traits<T>::kind == ST_INT) {          \
      return st_integer_##op(a, b);                        \
    } else if constexpr (st_traits<T>::kind == ST_FLOAT) { \
      return st_float_##op(a, b);                          \
    } else {                                               \
      return st_complex_##op(a, b);                        \
    }                                                      \
  }
ST_BY_KIND2(floor_divide)
ST_BY_KIND2(remainder)
ST_BY_KIND2(fmod)
ST_BY_KIND2(power)

template <class T>
ST_FN T st_divide(T a, T b) {
  if constexpr (st_traits<T>::kind == ST_COMPLEX) {
    return st_complex_divide(a, b);
  } else {
    return a / b;
  }
}
template <class T>
ST_FN T st_reciprocal(T a) {
  if constexpr (st_traits<T>::kind == ST_INT) {
    return st_integer_reciprocal(a);
  } else if constexpr (st_traits<T>::kind == ST_COMPLEX) {
    return st_complex_divide(T{1, 0}, a);
  } else {
    return (T)1 / a;
  }
}
template <class T>
ST_FN auto st_absolute(T a) {
  if constexpr (st_traits<T>::kind == ST_BOOL) {
    return a;
  } else if constexpr (st_traits<T>::kind == ST_INT) {
    return (T)st_magnitude(a);
  } else if constexpr (st_traits<T>::kind == ST_COMPLEX) {
    return st_hypot(a.re, a.im);
  } else {
    return st_magnitude_of(a);
  }
}
template <class T>
ST_FN T st_sign(T a) {
  if constexpr (st_traits<T>::kind == ST_COMPLEX) {
    return st_complex_sign(a);
  } else if constexpr (st_traits<T>::kind == ST_FLOAT) {
    return a > 0 ? (T)1 : a < 0 ? (T)-1 : a == 0 ? (T)0 : a;
  } else {
    return a > 0 ? (T)1 : a < 0 ? (T)-1 : (T)0;
  }
}
