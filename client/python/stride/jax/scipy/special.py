"""`jax.scipy.special`, of operations that grad and vmap know."""

import math
from typing import Any

from stride.jax import numpy as jnp
from stride.jax._array import Array
from stride.jax._special import digamma, erf, erf_inv as erfinv, erfc, gammaln
from stride.jax.nn import log_softmax, logsumexp, sigmoid as expit, softmax

__all__ = ["digamma", "entr", "erf", "erfc", "erfinv", "expit", "gammaln", "log_ndtr", "log_softmax", "logit",
           "logsumexp", "ndtr", "ndtri", "softmax", "xlog1py", "xlogy"]  # fmt: skip


def logit(x: Any) -> Array:
    """log(x / (1 - x)).

    Parameters
        x: an array of numbers from 0 to 1.
    Returns
        An array.
    Example
        >>> from stride import jax
        >>> float(jax.scipy.special.logit(0.5))
        0.0
    """
    x = jnp.asarray(x)
    return jnp.log(x / (1 - x))


def xlogy(x: Any, y: Any) -> Array:
    """x log(y); 0 where x is 0.

    Parameters
        x, y: arrays of numbers.
    Returns
        An array.
    Example
        >>> from stride import jax
        >>> float(jax.scipy.special.xlogy(0.0, 0.0))
        0.0
    """
    x, y = jnp.asarray(x), jnp.asarray(y)
    is_zero = x == 0
    return jnp.where(is_zero, 0.0 * x, x * jnp.log(jnp.where(is_zero, 1.0, y)))


def xlog1py(x: Any, y: Any) -> Array:
    """x log(1 + y); 0 where x is 0.

    Parameters
        x, y: arrays of numbers.
    Returns
        An array.
    Example
        >>> from stride import jax
        >>> float(jax.scipy.special.xlog1py(0.0, -1.0))
        0.0
    """
    x, y = jnp.asarray(x), jnp.asarray(y)
    is_zero = x == 0
    return jnp.where(is_zero, 0.0 * x, x * jnp.log1p(jnp.where(is_zero, 0.0, y)))


def entr(x: Any) -> Array:
    """-x log(x); 0 at 0 and -inf below.

    Parameters
        x: an array of numbers.
    Returns
        An array.
    Example
        >>> from stride import jax
        >>> float(jax.scipy.special.entr(1.0))
        -0.0
    """
    x = jnp.asarray(x)
    return jnp.where(x < 0, -jnp.inf, -xlogy(x, x))


def ndtr(x: Any) -> Array:
    """The distribution function of the standard normal distribution.

    Parameters
        x: an array of numbers.
    Returns
        An array.
    Example
        >>> from stride import jax
        >>> float(jax.scipy.special.ndtr(0.0))
        0.5
    """
    return 0.5 * erfc(-jnp.asarray(x) / math.sqrt(2))


def log_ndtr(x: Any) -> Array:
    """The logarithm of `ndtr`; below -10 by its asymptotic series, Abramowitz and Stegun 26.2.12.

    Parameters
        x: an array of numbers.
    Returns
        An array.
    Example
        >>> from stride import jax
        >>> round(float(jax.scipy.special.log_ndtr(0.0)), 4)
        -0.6931
    """
    x = jnp.asarray(x) * 1.0
    is_far = x < -10
    far = jnp.where(is_far, x, -10.0)
    square = 1 / (far * far)
    series = 1 - square * (1 - 3 * square * (1 - 5 * square * (1 - 7 * square)))
    near = jnp.where(is_far, 0.0, x)
    return jnp.where(is_far, -0.5 * far * far - jnp.log(-far) - 0.5 * math.log(2 * math.pi) + jnp.log(series),
                     jnp.log(ndtr(near)))


def ndtri(p: Any) -> Array:
    """The number whose `ndtr` is p.

    Parameters
        p: an array of numbers from 0 to 1.
    Returns
        An array.
    Example
        >>> from stride import jax
        >>> float(jax.scipy.special.ndtri(0.5))
        0.0
    """
    return math.sqrt(2) * erfinv(2 * jnp.asarray(p) - 1)
