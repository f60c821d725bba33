"""Special functions as functions of the service, which vmap, jit and grad know by name."""

import functools
import math
from typing import Any, Callable, Optional

import numpy as np

import stride as _st
from stride import _functions, _gradient_ufuncs
from stride.jax._array import Array, as_jax, given

__all__ = ["digamma", "erf", "erf_inv", "erfc", "gammaln"]

# erf_inv: M. Giles, "Approximating the erfinv function", GPU Computing Gems, 2011, table 5; in double precision two of
# Newton's steps follow. digamma: recurrence up to 6, then the asymptotic series, Abramowitz and Stegun 6.3.18.
_SOURCES = {
    "stride_jax_erf": """
template <typename T> __device__ T stride_jax_erf(T x) { return erf(x); }
""",
    "stride_jax_erfc": """
template <typename T> __device__ T stride_jax_erfc(T x) { return erfc(x); }
""",
    "stride_jax_gammaln": """
template <typename T> __device__ T stride_jax_gammaln(T x) { return lgamma(x); }
""",
    "stride_jax_digamma": """
template <typename T> __device__ T stride_jax_digamma(T x) {
  double y = x, result = 0;
  if (y <= 0) {
    if (y == floor(y)) return (T)NAN;
    const double pi = 3.14159265358979323846;
    result = -pi / tan(pi * y);
    y = 1 - y;
  }
  while (y < 6) {
    result -= 1 / y;
    y += 1;
  }
  const double square = 1 / (y * y);
  result += log(y) - 0.5 / y -
            square * (1.0 / 12 - square * (1.0 / 120 - square * (1.0 / 252 - square * (1.0 / 240 -
            square * (1.0 / 132 - square * (691.0 / 32760 - square / 12))))));
  return (T)result;
}
""",
    "stride_jax_erf_inv": """
template <typename T> __device__ T stride_jax_erf_inv(T x) {
  if (x != x || x < -1 || x > 1) return (T)NAN;
  if (x == 1) return (T)INFINITY;
  if (x == -1) return -(T)INFINITY;
  T w = -log1p(-x * x), p;
  if (w < 5) {
    w -= (T)2.5;
    p = (T)2.81022636e-08;
    p = (T)3.43273939e-07 + p * w;
    p = (T)-3.5233877e-06 + p * w;
    p = (T)-4.39150654e-06 + p * w;
    p = (T)0.00021858087 + p * w;
    p = (T)-0.00125372503 + p * w;
    p = (T)-0.00417768164 + p * w;
    p = (T)0.246640727 + p * w;
    p = (T)1.50140941 + p * w;
  } else {
    w = sqrt(w) - 3;
    p = (T)-0.000200214257;
    p = (T)0.000100950558 + p * w;
    p = (T)0.00134934322 + p * w;
    p = (T)-0.00367342844 + p * w;
    p = (T)0.00573950773 + p * w;
    p = (T)-0.0076224613 + p * w;
    p = (T)0.00943887047 + p * w;
    p = (T)1.00167406 + p * w;
    p = (T)2.83297682 + p * w;
  }
  T y = p * x;
  if (sizeof(T) == 8) {
    const T sign = x < 0 ? -1 : 1;
    const T size = x * sign;
    y *= sign;
    for (int i = 0; i < 3; ++i) {
      const T error = size < (T)0.5 ? erf(y) - size : (1 - size) - erfc(y);
      const T step = error * (T)0.88622692545275801365 * exp(y * y);
      y -= step / (1 + y * step);
    }
    y *= sign;
  }
  return y;
}
""",
}


@functools.lru_cache(maxsize=None)
def _ufunc(name: str) -> Callable:
    return _functions.define_ufunc(name, ["float32->float32", "float64->float64"], source=_SOURCES[name])


def _call(name: str, x: Any) -> Array:
    array = given(x)
    array = array if isinstance(array, _st.Array) else _st.asarray(array)
    if array.dtype.kind not in "f" or array.dtype.itemsize < 4:
        array = array.astype(np.float32 if array.dtype.itemsize < 8 and array.dtype.kind == "f" else np.float64)
    return as_jax(_ufunc(name)(array))


def erf(x: Any) -> Array:
    """The error function.

    Parameters
        x: an array of real numbers.
    Returns
        An array of floats.
    Example
        >>> from stride import jax
        >>> float(jax.scipy.special.erf(0.0))
        0.0
    """
    return _call("stride_jax_erf", x)


def erfc(x: Any) -> Array:
    """1 - erf(x).

    Parameters
        x: an array of real numbers.
    Returns
        An array of floats.
    Example
        >>> from stride import jax
        >>> float(jax.scipy.special.erfc(0.0))
        1.0
    """
    return _call("stride_jax_erfc", x)


def erf_inv(x: Any) -> Array:
    """The number whose error function is `x`.

    Parameters
        x: an array of numbers from -1 to 1.
    Returns
        An array of floats.
    Example
        >>> from stride import jax
        >>> float(jax.scipy.special.erfinv(0.0))
        0.0
    """
    return _call("stride_jax_erf_inv", x)


def gammaln(x: Any) -> Array:
    """The logarithm of the absolute value of the gamma function.

    Parameters
        x: an array of real numbers.
    Returns
        An array of floats.
    Example
        >>> from stride import jax
        >>> float(jax.scipy.special.gammaln(1.0))
        0.0
    """
    return _call("stride_jax_gammaln", x)


def digamma(x: Any) -> Array:
    """The derivative of `gammaln`.

    Parameters
        x: an array of real numbers.
    Returns
        An array of floats.
    Example
        >>> from stride import jax
        >>> round(float(jax.scipy.special.digamma(1.0)), 4)
        -0.5772
    """
    return _call("stride_jax_digamma", x)


_ROOT = 2 / math.sqrt(math.pi)
_gradient_ufuncs.UFUNCS.update({
    "stride_jax_erf": lambda g, y, x: (g * _ROOT * _st.exp(-x * x),),
    "stride_jax_erfc": lambda g, y, x: (g * -_ROOT * _st.exp(-x * x),),
    "stride_jax_erf_inv": lambda g, y, x: (g * (1 / _ROOT) * _st.exp(y * y),),
    "stride_jax_gammaln": lambda g, y, x: (g * _ufunc("stride_jax_digamma")(x),),
})  # fmt: skip
