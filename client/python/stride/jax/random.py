"""`jax.random`: random numbers by key, with JAX's bits: the same key gives the numbers that JAX gives, up to the last
digits of logarithms and roots."""

import math
from typing import Any, Optional

import numpy as np

import stride as _st
from stride.jax import _config, _keys, numpy as jnp
from stride.jax._array import Array, as_jax
from stride.jax._random_keys import (
    KeyArray, PRNGKey, _shape, _single, clone, fold_in, key, key_data, key_impl, split, wrap_key_data,
)
from stride.jax._special import erf, erf_inv

__all__ = [
    "KeyArray", "PRNGKey", "bernoulli", "bits", "categorical", "cauchy", "choice", "clone", "exponential", "fold_in",
    "gumbel", "key", "key_data", "key_impl", "laplace", "logistic", "lognormal", "multivariate_normal", "normal",
    "orthogonal", "pareto", "permutation", "rademacher", "randint", "rayleigh", "split", "truncated_normal", "uniform",
    "weibull_min", "wrap_key_data",
]  # fmt: skip


def bits(key: Any, shape: Any = (), dtype: Any = None) -> Array:
    """Random bits.

    Parameters
        key: a key.
        shape: the result's.
        dtype: an unsigned type; None for uint32, or uint64 with jax_enable_x64.
    Returns
        An array.
    Example
        >>> from stride import jax
        >>> jax.random.bits(jax.random.key(0), (2,)).tolist()
        [4070199207, 4202968722]
    """
    return as_jax(_bits(key, _shape(shape), _config.canonical(np.uint64 if dtype is None else dtype)))


def _bits(key: Any, shape: tuple, dtype: Any) -> Any:
    first, second = (
        one if isinstance(one, _st.Array) else _st.asarray(one) for one in _keys.words(_single(key), math.prod(shape))
    )
    dtype = np.dtype(dtype)
    if dtype == np.uint64:
        result = (first.astype(np.uint64) << np.uint64(32)) | second.astype(np.uint64)
    else:
        result = first ^ second
        result = result if dtype == np.uint32 else result.astype(dtype)
    return _st.reshape(result, shape)


def _float(dtype: Any) -> np.dtype:
    dtype = _config.canonical(np.float64 if dtype is None else dtype)
    if dtype.kind != "f":
        raise ValueError(f"dtype argument must be a float dtype, got {dtype}")
    if dtype.itemsize not in (4, 8):
        raise ValueError(f"stride.jax.random draws float32 and float64, not {dtype}; convert the result")
    return dtype


def uniform(key: Any, shape: Any = (), dtype: Any = None, minval: Any = 0.0, maxval: Any = 1.0) -> Array:
    """Uniform numbers from `minval` to below `maxval`.

    Parameters
        key: a key.
        shape: the result's.
        dtype: a float type; None for the default.
        minval, maxval: the bounds, which broadcast.
    Returns
        An array.
    Example
        >>> from stride import jax
        >>> jax.random.uniform(jax.random.key(0)).shape
        ()
    """
    dtype, shape = _float(dtype), _shape(shape)
    if dtype == np.float32:
        unit = (_bits(key, shape, np.uint32) >> np.uint32(9)).astype(dtype) * np.float32(2.0**-23)
    else:
        unit = (_bits(key, shape, np.uint64) >> np.uint64(12)).astype(dtype) * 2.0**-52
    if isinstance(minval, (int, float)) and isinstance(maxval, (int, float)) and (minval, maxval) == (0, 1):
        return as_jax(unit)
    low, high = jnp.asarray(minval).astype(dtype), jnp.asarray(maxval).astype(dtype)
    return jnp.maximum(low, as_jax(unit) * (high - low) + low)


def normal(key: Any, shape: Any = (), dtype: Any = None) -> Array:
    """Standard normal numbers.

    Parameters
        key: a key.
        shape: the result's.
        dtype: a float type; None for the default. complex64 and complex128 have a variance of 1 in all.
    Returns
        An array.
    Example
        >>> from stride import jax
        >>> jax.random.normal(jax.random.key(0), (2,)).shape
        (2,)
    """
    if dtype is not None and np.dtype(dtype).kind == "c":
        real_type = np.float64 if _config.canonical(dtype) == np.complex128 else np.float32
        first, second = split(key)
        return (normal(first, shape, real_type) + 1j * normal(second, shape, real_type)) / math.sqrt(2)
    dtype = _float(dtype)
    low = np.nextafter(dtype.type(-1), dtype.type(0))
    return erf_inv(uniform(key, shape, dtype, float(low), 1.0)) * dtype.type(math.sqrt(2))


def randint(key: Any, shape: Any, minval: Any, maxval: Any, dtype: Any = None) -> Array:
    """Integers from `minval` to below `maxval`.

    Parameters
        key: a key.
        shape: the result's.
        minval, maxval: the bounds, which broadcast.
        dtype: an integer type; None for the default.
    Returns
        An array.
    Example
        >>> from stride import jax
        >>> jax.random.randint(jax.random.key(0), (3,), 0, 1).tolist()
        [0, 0, 0]
    """
    dtype, shape = _config.canonical(np.int64 if dtype is None else dtype), _shape(shape)
    if dtype.kind not in "iu":
        raise TypeError(f"randint only accepts integer dtypes, got {dtype}")
    info = np.iinfo(dtype)
    unsigned = np.dtype(f"u{dtype.itemsize}")
    if isinstance(minval, (int, np.integer)) and isinstance(maxval, (int, np.integer)):
        low, high = min(max(int(minval), info.min), info.max), min(max(int(maxval), info.min), info.max)
        span: Any = unsigned.type(max(1, high - low)) if int(maxval) <= info.max else unsigned.type(
            (int(maxval) - low) % 2 ** (8 * dtype.itemsize))
        start: Any = dtype.type(low)
        half = (2 ** (4 * dtype.itemsize)) % int(span) if span else 0
        multiplier: Any = unsigned.type((half * half % 2 ** (8 * dtype.itemsize)) % int(span) if span else 0)
    else:
        start, end = _st.asarray(jnp.asarray(minval).astype(dtype)), _st.asarray(jnp.asarray(maxval).astype(dtype))
        span = _st.where(end > start, end - start, 1).astype(unsigned)
        half = unsigned.type(2 ** (4 * dtype.itemsize)) % span
        multiplier = (half * half) % span
    first, second = split(key)
    higher, lower = _bits(first, shape, unsigned), _bits(second, shape, unsigned)
    offset = ((higher % span) * multiplier + lower % span) % span
    return as_jax(start + offset.astype(dtype))


def bernoulli(key: Any, p: Any = 0.5, shape: Any = None, mode: str = "low") -> Array:
    """Bools that are true with a probability.

    Parameters
        key: a key.
        p: the probability, which broadcasts.
        shape: the result's; None for `p`'s.
        mode: low.
    Returns
        An array of bool.
    Example
        >>> from stride import jax
        >>> jax.random.bernoulli(jax.random.key(0), 1.0).tolist()
        True
    """
    _only_low(mode)
    p = jnp.asarray(p)
    dtype = p.dtype if p.dtype.kind == "f" else _config.default_float()
    return uniform(key, p.shape if shape is None else shape, dtype) < p


def _only_low(mode: Optional[str]) -> None:
    if mode not in (None, "low"):
        raise NotImplementedError(f"stride.jax.random has mode='low' alone, not {mode!r}")


def gumbel(key: Any, shape: Any = (), dtype: Any = None, mode: Optional[str] = None) -> Array:
    """Numbers of the standard Gumbel distribution.

    Parameters
        key: a key.
        shape: the result's.
        dtype: a float type; None for the default.
        mode: None or low.
    Returns
        An array.
    Example
        >>> from stride import jax
        >>> jax.random.gumbel(jax.random.key(0), (2,)).shape
        (2,)
    """
    _only_low(mode)
    dtype = _float(dtype)
    return -jnp.log(-jnp.log(uniform(key, shape, dtype, float(np.finfo(dtype).tiny), 1.0)))


def categorical(
    key: Any, logits: Any, axis: int = -1, shape: Any = None, replace: bool = True, mode: Optional[str] = None
) -> Array:
    """Places along an axis, with probabilities that are the softmax of `logits`.

    Parameters
        key: a key.
        logits: the logarithms of weights.
        axis: along which axis.
        shape: the result's; None for `logits`' without the axis.
        replace: must be True.
        mode: None or low.
    Returns
        An array of integers.
    Example
        >>> from stride import jax
        >>> jax.random.categorical(jax.random.key(0), jax.numpy.array([0.0, -1e9])).tolist()
        0
    """
    if not replace:
        raise NotImplementedError("stride.jax.random.categorical has no replace=False")
    logits = jnp.asarray(logits)
    axis = axis % logits.ndim
    batch = tuple(n for i, n in enumerate(logits.shape) if i != axis)
    shape = batch if shape is None else _shape(shape)
    lead = shape[: len(shape) - len(batch)]
    whole = list(shape)
    whole.insert(len(lead) + axis, logits.shape[axis])
    dtype = logits.dtype if logits.dtype.kind == "f" else _config.default_float()
    expanded = jnp.reshape(logits, ((1,) * len(lead)) + logits.shape)
    return jnp.argmax(gumbel(key, tuple(whole), dtype, mode) + expanded, axis=len(lead) + axis)


def exponential(key: Any, shape: Any = (), dtype: Any = None) -> Array:
    """Numbers of the standard exponential distribution.

    Parameters
        key: a key.
        shape: the result's.
        dtype: a float type; None for the default.
    Returns
        An array.
    Example
        >>> from stride import jax
        >>> jax.random.exponential(jax.random.key(0), (2,)).shape
        (2,)
    """
    return -jnp.log1p(-uniform(key, shape, dtype))


def laplace(key: Any, shape: Any = (), dtype: Any = None) -> Array:
    """Numbers of the standard Laplace distribution.

    Parameters
        key: a key.
        shape: the result's.
        dtype: a float type; None for the default.
    Returns
        An array.
    Example
        >>> from stride import jax
        >>> jax.random.laplace(jax.random.key(0), (2,)).shape
        (2,)
    """
    dtype = _float(dtype)
    u = uniform(key, shape, dtype, float(dtype.type(-1) + np.finfo(dtype).epsneg), 1.0)
    return jnp.sign(u) * jnp.log1p(-jnp.abs(u))


def cauchy(key: Any, shape: Any = (), dtype: Any = None) -> Array:
    """Numbers of the standard Cauchy distribution.

    Parameters
        key: a key.
        shape: the result's.
        dtype: a float type; None for the default.
    Returns
        An array.
    Example
        >>> from stride import jax
        >>> jax.random.cauchy(jax.random.key(0), (2,)).shape
        (2,)
    """
    dtype = _float(dtype)
    u = uniform(key, shape, dtype, float(np.finfo(dtype).eps), 1.0)
    return jnp.tan((u - 0.5) * dtype.type(math.pi))


def logistic(key: Any, shape: Any = (), dtype: Any = None) -> Array:
    """Numbers of the standard logistic distribution.

    Parameters
        key: a key.
        shape: the result's.
        dtype: a float type; None for the default.
    Returns
        An array.
    Example
        >>> from stride import jax
        >>> jax.random.logistic(jax.random.key(0), (2,)).shape
        (2,)
    """
    dtype = _float(dtype)
    u = uniform(key, shape, dtype, float(np.finfo(dtype).tiny), 1.0)
    return jnp.log(u / (1 - u))


def lognormal(key: Any, sigma: Any = 1.0, shape: Any = None, dtype: Any = None) -> Array:
    """Exponentials of normal numbers.

    Parameters
        key: a key.
        sigma: the deviation of the normal numbers.
        shape: the result's; None for `sigma`'s.
        dtype: a float type; None for the default.
    Returns
        An array.
    Example
        >>> from stride import jax
        >>> jax.random.lognormal(jax.random.key(0), shape=(2,)).shape
        (2,)
    """
    shape = np.shape(sigma) if shape is None else shape
    return jnp.exp(normal(key, shape, dtype) * sigma)


def pareto(key: Any, b: Any, shape: Any = None, dtype: Any = None) -> Array:
    """Numbers of the Pareto distribution.

    Parameters
        key: a key.
        b: the exponent.
        shape: the result's; None for `b`'s.
        dtype: a float type; None for the default.
    Returns
        An array.
    Example
        >>> from stride import jax
        >>> jax.random.pareto(jax.random.key(0), 2.0, (2,)).shape
        (2,)
    """
    shape = np.shape(b) if shape is None else shape
    return jnp.exp(exponential(key, shape, dtype) / b)


def rayleigh(key: Any, scale: Any, shape: Any = None, dtype: Any = None) -> Array:
    """Numbers of the Rayleigh distribution.

    Parameters
        key: a key.
        scale: the scale.
        shape: the result's; None for `scale`'s.
        dtype: a float type; None for the default.
    Returns
        An array.
    Example
        >>> from stride import jax
        >>> jax.random.rayleigh(jax.random.key(0), 2.0, (2,)).shape
        (2,)
    """
    shape = np.shape(scale) if shape is None else shape
    return jnp.sqrt(-2 * jnp.log(uniform(key, shape, dtype))) * scale


def weibull_min(key: Any, scale: Any, concentration: Any, shape: Any = (), dtype: Any = None) -> Array:
    """Numbers of the Weibull distribution.

    Parameters
        key: a key.
        scale, concentration: its parameters.
        shape: the result's.
        dtype: a float type; None for the default.
    Returns
        An array.
    Example
        >>> from stride import jax
        >>> jax.random.weibull_min(jax.random.key(0), 1.0, 2.0, (2,)).shape
        (2,)
    """
    return jnp.power(-jnp.log1p(-uniform(key, shape, dtype)), 1.0 / concentration) * scale


def rademacher(key: Any, shape: Any = (), dtype: Any = None) -> Array:
    """-1 or 1.

    Parameters
        key: a key.
        shape: the result's.
        dtype: a type; None for the default integer.
    Returns
        An array.
    Example
        >>> from stride import jax
        >>> jax.random.rademacher(jax.random.key(0), (2,)).shape
        (2,)
    """
    dtype = _config.canonical(np.int64 if dtype is None else dtype)
    return (2 * bernoulli(key, 0.5, _shape(shape)).astype(dtype) - 1).astype(dtype)


def truncated_normal(key: Any, lower: Any, upper: Any, shape: Any = None, dtype: Any = None) -> Array:
    """Standard normal numbers between bounds.

    Parameters
        key: a key.
        lower, upper: the bounds, which broadcast.
        shape: the result's; None for that of the bounds.
        dtype: a float type; None for the default.
    Returns
        An array.
    Example
        >>> from stride import jax
        >>> jax.random.truncated_normal(jax.random.key(0), -1.0, 1.0, (2,)).shape
        (2,)
    """
    dtype = _float(dtype)
    low, high = jnp.asarray(lower).astype(dtype), jnp.asarray(upper).astype(dtype)
    shape = np.broadcast_shapes(low.shape, high.shape) if shape is None else shape
    root = dtype.type(math.sqrt(2))
    u = uniform(key, shape, dtype, erf(low / root), erf(high / root))
    return jnp.clip(root * erf_inv(u), jnp.nextafter(low, jnp.full_like(low, np.inf)),
                    jnp.nextafter(high, jnp.full_like(high, -np.inf)))


def multivariate_normal(
    key: Any, mean: Any, cov: Any, shape: Any = None, dtype: Any = None, method: str = "cholesky"
) -> Array:
    """Normal vectors.

    Parameters
        key: a key.
        mean: the mean, (..., n).
        cov: the covariance, (..., n, n).
        shape: the result's without the last axis; None for that of the parameters.
        dtype: a float type; None for the default.
        method: cholesky.
    Returns
        An array of shape (*shape, n).
    Example
        >>> from stride import jax
        >>> jnp = jax.numpy
        >>> jax.random.multivariate_normal(jax.random.key(0), jnp.zeros(2), jnp.eye(2), (3,)).shape
        (3, 2)
    """
    if method != "cholesky":
        raise NotImplementedError(f"stride.jax.random.multivariate_normal has method='cholesky' alone, not {method!r}")
    dtype = _float(dtype)
    mean, cov = jnp.asarray(mean).astype(dtype), jnp.asarray(cov).astype(dtype)
    shape = np.broadcast_shapes(mean.shape[:-1], cov.shape[:-2]) if shape is None else _shape(shape)
    draws = normal(key, (*shape, mean.shape[-1]), dtype)
    return mean + jnp.squeeze(jnp.matmul(jnp.linalg.cholesky(cov), jnp.expand_dims(draws, axis=-1)), axis=-1)


def orthogonal(key: Any, n: int, shape: Any = (), dtype: Any = None, m: Optional[int] = None) -> Array:
    """Uniform orthogonal matrices.

    Parameters
        key: a key.
        n: the number of rows.
        shape: the batch.
        dtype: a float type; None for the default.
        m: the number of columns; None for `n`.
    Returns
        An array of shape (*shape, n, m).
    Example
        >>> from stride import jax
        >>> jax.random.orthogonal(jax.random.key(0), 3).shape
        (3, 3)
    """
    m = n if m is None else m
    z = normal(key, (*_shape(shape), max(n, m), min(n, m)), dtype)
    q, r = jnp.linalg.qr(z)
    d = jnp.diagonal(r, 0, -2, -1)
    x = q * jnp.expand_dims(jnp.where(d < 0, -1.0, 1.0).astype(z.dtype), axis=-2)
    return jnp.swapaxes(x, -2, -1) if n < m else x


def _shuffled(key: Any, x: Any) -> Any:
    rounds = math.ceil(3 * math.log(max(1, x.shape[0])) / math.log(np.iinfo(np.uint32).max))
    for _ in range(rounds):
        key, sub = split(key)
        x = x[_st.argsort(_bits(sub, (x.shape[0],), np.uint32), stable=True)]
    return x


def permutation(key: Any, x: Any, axis: int = 0, independent: bool = False) -> Array:
    """The numbers below `x`, or the parts of an array along an axis, in a random order.

    Parameters
        key: a key.
        x: an integer or an array.
        axis: along which axis.
        independent: must be False.
    Returns
        An array.
    Example
        >>> from stride import jax
        >>> sorted(jax.random.permutation(jax.random.key(0), 4).tolist())
        [0, 1, 2, 3]
    """
    if independent:
        raise NotImplementedError("stride.jax.random.permutation has no independent=True")
    if isinstance(x, (int, np.integer)):
        return as_jax(_shuffled(key, _st.arange(int(x), dtype=_config.canonical(np.int64))))
    x = jnp.asarray(x)
    if not x.ndim:
        return as_jax(_shuffled(key, _st.arange(int(x), dtype=x.dtype)))
    if x.ndim == 1:
        return as_jax(_shuffled(key, _st.asarray(x)))
    return jnp.take(x, _shuffled(key, _st.arange(x.shape[axis], dtype=np.int32)), axis=axis)


def choice(
    key: Any, a: Any, shape: Any = (), replace: bool = True, p: Any = None, axis: int = 0, mode: Optional[str] = None
) -> Array:
    """Parts of an array, or numbers below `a`, at random.

    Parameters
        key: a key.
        a: an integer or an array.
        shape: how many, as a shape.
        replace: whether one may come more than once.
        p: their probabilities; None for equal ones.
        axis: along which axis.
        mode: None or low.
    Returns
        An array.
    Raises
        ValueError for more than there are, without `replace`.
    Example
        >>> from stride import jax
        >>> jax.random.choice(jax.random.key(0), 5, (3,)).shape
        (3,)
    """
    _only_low(mode)
    shape = _shape(shape)
    values = None if isinstance(a, (int, np.integer)) else jnp.asarray(a)
    count = int(a) if values is None else values.shape[axis]
    number = math.prod(shape)
    if count <= 0:
        raise ValueError("a must be greater than 0 unless no samples are taken")
    if not replace and number > count:
        raise ValueError(f"Cannot take a larger sample (size {number}) than population (size {count}) when "
                         f"'replace=False'")
    if p is None:
        if replace:
            places = randint(key, shape, 0, count)
        else:
            if values is not None and values.ndim:
                picked = permutation(key, values, axis)[(slice(None),) * (axis % values.ndim) + (slice(number),)]
                whole = picked.shape[:axis % values.ndim] + shape + picked.shape[axis % values.ndim + 1:]
                return jnp.reshape(picked, whole)
            places = jnp.reshape(permutation(key, count)[:number], shape)
    else:
        weights = jnp.asarray(p)
        weights = weights if weights.dtype.kind == "f" else weights.astype(_config.default_float())
        if weights.shape != (count,):
            raise ValueError(f"p must be None or a 1D vector with the same size as a.shape[axis]. p has shape "
                             f"{weights.shape} and a.shape[axis] is {count}.")
        if replace:
            sums = jnp.cumsum(weights)
            drawn = sums[-1] * (1 - uniform(key, shape, weights.dtype))
            places = jnp.searchsorted(sums, drawn).astype(np.int32)
        else:
            order = jnp.argsort(-(gumbel(key, (count,), weights.dtype) + jnp.log(weights)), stable=True)
            places = jnp.reshape(order[:number], shape)
    return places if values is None else jnp.take(values, places, axis=axis)


def __getattr__(name: str) -> Any:
    raise AttributeError(f"stride.jax.random has no {name}; stride.random has NumPy's distributions, by generator")
