"""`jax.nn`: activations of neural networks, of operations that grad and vmap know."""

import functools
import math
from typing import Any, Optional

import numpy as np

from stride.jax import _config, numpy as jnp
from stride.jax._array import Array
from stride.jax._special import erf
from stride.jax.nn import initializers

__all__ = [
    "celu", "elu", "gelu", "glu", "hard_sigmoid", "hard_silu", "hard_swish", "hard_tanh", "identity", "initializers",
    "leaky_relu", "log_sigmoid", "log_softmax", "logsumexp", "mish", "normalize", "one_hot", "relu", "relu6", "selu",
    "sigmoid", "silu", "soft_sign", "softmax", "softplus", "sparse_plus", "squareplus", "standardize", "swish",
]  # fmt: skip


def _floats(x: Any) -> Array:
    x = jnp.asarray(x)
    return x if x.dtype.kind in "fc" else x.astype(_config.default_float())


def _activation(name: str, text: str, function: Any) -> Any:
    def call(x: Any) -> Array:
        return function(jnp.asarray(x) if name in ("relu", "relu6", "identity") else _floats(x))

    call.__name__ = call.__qualname__ = name
    call.__doc__ = f"""{text}

    Parameters
        x: an array of numbers.
    Returns
        An array of the same shape.
    Example
        >>> from stride import jax
        >>> jax.nn.{name}(jax.numpy.ones(2)).shape
        (2,)
    """
    return call


def _stable_sigmoid(x: Any) -> Any:
    return 0.5 * (jnp.tanh(0.5 * x) + 1.0)


def _relu(x: Any) -> Any:
    return jnp.where(x > 0, x, jnp.zeros_like(x))  # the derivative at 0 is 0, as JAX's


def _softplus(x: Any) -> Any:
    return jnp.logaddexp(x, jnp.zeros_like(x))


relu = _activation("relu", "The greater of x and 0; its derivative at 0 is 0.", _relu)
relu6 = _activation("relu6", "x between 0 and 6.", lambda x: jnp.minimum(_relu(x), jnp.full_like(x, 6)))
identity = _activation("identity", "x itself.", lambda x: x)
sigmoid = _activation("sigmoid", "1 / (1 + exp(-x)).", _stable_sigmoid)
log_sigmoid = _activation("log_sigmoid", "The logarithm of the sigmoid.", lambda x: -_softplus(-x))
softplus = _activation("softplus", "log(1 + exp(x)).", _softplus)
sparse_plus = _activation("sparse_plus", "0 below -1, x above 1, and (x + 1)^2 / 4 between.",
                          lambda x: jnp.where(x <= -1.0, 0.0, jnp.where(x >= 1.0, x, (x + 1.0) ** 2 / 4)))
soft_sign = _activation("soft_sign", "x / (1 + |x|).", lambda x: x / (jnp.abs(x) + 1))
silu = _activation("silu", "x sigmoid(x).", lambda x: x * _stable_sigmoid(x))
swish = silu
mish = _activation("mish", "x tanh(softplus(x)).", lambda x: x * jnp.tanh(_softplus(x)))
hard_tanh = _activation("hard_tanh", "x between -1 and 1.", lambda x: jnp.where(x > 1, 1.0, jnp.where(x < -1, -1.0, x)))
hard_sigmoid = _activation("hard_sigmoid", "relu6(x + 3) / 6.", lambda x: relu6(x + 3.0) / 6.0)
hard_silu = _activation("hard_silu", "x hard_sigmoid(x).", lambda x: x * hard_sigmoid(x))
hard_swish = hard_silu


def leaky_relu(x: Any, negative_slope: Any = 1e-2) -> Array:
    """x, and below 0 a multiple of it.

    Parameters
        x: an array of numbers.
        negative_slope: the factor below 0.
    Returns
        An array of the same shape.
    Example
        >>> from stride import jax
        >>> float(jax.nn.leaky_relu(-1.0, 0.5))
        -0.5
    """
    x = _floats(x)
    return jnp.where(x >= 0, x, negative_slope * x)


def elu(x: Any, alpha: Any = 1.0) -> Array:
    """x, and below 0 alpha (exp(x) - 1).

    Parameters
        x: an array of numbers.
        alpha: a number.
    Returns
        An array of the same shape.
    Example
        >>> from stride import jax
        >>> float(jax.nn.elu(1.0))
        1.0
    """
    x = _floats(x)
    return jnp.where(x > 0, x, alpha * jnp.expm1(jnp.where(x > 0, 0.0, x)))


def celu(x: Any, alpha: Any = 1.0) -> Array:
    """x, and below 0 alpha (exp(x / alpha) - 1).

    Parameters
        x: an array of numbers.
        alpha: a number.
    Returns
        An array of the same shape.
    Example
        >>> from stride import jax
        >>> float(jax.nn.celu(1.0))
        1.0
    """
    x = _floats(x)
    return jnp.where(x > 0, x, alpha * jnp.expm1(jnp.where(x > 0, 0.0, x) / alpha))


def selu(x: Any) -> Array:
    """The scaled exponential linear unit of Klambauer and others, "Self-normalizing neural networks", 2017.

    Parameters
        x: an array of numbers.
    Returns
        An array of the same shape.
    Example
        >>> from stride import jax
        >>> round(float(jax.nn.selu(1.0)), 4)
        1.0507
    """
    return 1.0507009873554804934193349852946 * elu(x, 1.6732632423543772848170429916717)


def gelu(x: Any, approximate: bool = True) -> Array:
    """The Gaussian error linear unit of Hendrycks and Gimpel, 2016.

    Parameters
        x: an array of numbers.
        approximate: whether it is computed by tanh.
    Returns
        An array of the same shape.
    Example
        >>> from stride import jax
        >>> round(float(jax.nn.gelu(1.0)), 4)
        0.8412
    """
    x = _floats(x)
    if approximate:
        return x * (0.5 * (1.0 + jnp.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * (x * x * x)))))
    return 0.5 * x * (1.0 + erf(x / math.sqrt(2)))


def glu(x: Any, axis: int = -1) -> Array:
    """One half of x along an axis times the sigmoid of the other.

    Parameters
        x: an array of numbers.
        axis: the axis.
    Returns
        An array.
    Example
        >>> from stride import jax
        >>> jax.nn.glu(jax.numpy.ones(4)).shape
        (2,)
    """
    first, second = jnp.split(_floats(x), 2, axis=axis)
    return first * sigmoid(second)


def squareplus(x: Any, b: Any = 4) -> Array:
    """(x + sqrt(x^2 + b)) / 2.

    Parameters
        x: an array of numbers.
        b: a number.
    Returns
        An array of the same shape.
    Example
        >>> from stride import jax
        >>> float(jax.nn.squareplus(0.0))
        1.0
    """
    x = _floats(x)
    return (x + jnp.sqrt(x * x + b)) / 2


def logsumexp(
    a: Any, axis: Any = None, b: Any = None, keepdims: bool = False, return_sign: bool = False, where: Any = None
) -> Any:
    """The logarithm of a sum of exponentials.

    Parameters
        a: an array of real numbers.
        axis: which axes to sum over; None for all.
        b: factors of the exponentials.
        keepdims: whether the axes stay.
        return_sign: whether the sign of the sum is returned too.
        where: bools; the elements where it is false are left out.
    Returns
        An array, or a pair.
    Example
        >>> from stride import jax
        >>> round(float(jax.nn.logsumexp(jax.numpy.zeros(2))), 4)
        0.6931
    """
    from stride.jax import lax

    a = _floats(a)
    if where is not None:
        a = jnp.where(where, a, -jnp.inf)
    most = lax.stop_gradient(jnp.max(a, axis=axis, keepdims=True))
    most = jnp.where(jnp.isfinite(most), most, jnp.zeros_like(most))
    terms = jnp.exp(a - most)
    if b is not None:
        terms = terms * b
    total = jnp.sum(terms, axis=axis, keepdims=keepdims)
    shift = most if keepdims else jnp.reshape(most, total.shape)
    if return_sign:
        return jnp.log(jnp.abs(total)) + shift, jnp.sign(total)
    return jnp.log(total) + shift


def softmax(x: Any, axis: Any = -1, where: Any = None) -> Array:
    """Exponentials divided by their sum.

    Parameters
        x: an array of real numbers.
        axis: along which axes.
        where: bools; the elements where it is false are left out and 0.
    Returns
        An array of the same shape.
    Example
        >>> from stride import jax
        >>> jax.nn.softmax(jax.numpy.zeros(2)).tolist()
        [0.5, 0.5]
    """
    from stride.jax import lax

    x = _floats(x)
    if where is not None:
        x = jnp.where(where, x, -jnp.inf)
    terms = jnp.exp(x - lax.stop_gradient(jnp.max(x, axis=axis, keepdims=True)))
    return terms / jnp.sum(terms, axis=axis, keepdims=True)


def log_softmax(x: Any, axis: Any = -1, where: Any = None) -> Array:
    """The logarithm of the softmax.

    Parameters
        x: an array of real numbers.
        axis: along which axes.
        where: bools; the elements where it is false are left out.
    Returns
        An array of the same shape.
    Example
        >>> from stride import jax
        >>> [round(one, 4) for one in jax.nn.log_softmax(jax.numpy.zeros(2)).tolist()]
        [-0.6931, -0.6931]
    """
    from stride.jax import lax

    x = _floats(x)
    if where is not None:
        x = jnp.where(where, x, -jnp.inf)
    shifted = x - lax.stop_gradient(jnp.max(x, axis=axis, keepdims=True))
    return shifted - jnp.log(jnp.sum(jnp.exp(shifted), axis=axis, keepdims=True))


def standardize(x: Any, axis: Any = -1, mean: Any = None, variance: Any = None, epsilon: Any = 1e-5) -> Array:
    """x less its mean, divided by the root of its variance.

    Parameters
        x: an array of real numbers.
        axis: along which axes.
        mean, variance: those to use; None for x's.
        epsilon: added to the variance.
    Returns
        An array of the same shape.
    Example
        >>> from stride import jax
        >>> jax.nn.standardize(jax.numpy.ones(2)).tolist()
        [0.0, 0.0]
    """
    x = _floats(x)
    mean = jnp.mean(x, axis=axis, keepdims=True) if mean is None else mean
    if variance is None:
        variance = jnp.mean(jnp.square(x), axis=axis, keepdims=True) - jnp.square(mean)
    return (x - mean) / jnp.sqrt(variance + epsilon)


normalize = standardize


def one_hot(x: Any, num_classes: int, *, dtype: Any = None, axis: int = -1) -> Array:
    """For each integer a vector that is 1 at its place and 0 elsewhere.

    Parameters
        x: an array of integers.
        num_classes: the length of the vectors.
        dtype: the element type; None for the default float.
        axis: where the vectors' axis is.
    Returns
        An array with one axis more.
    Example
        >>> from stride import jax
        >>> jax.nn.one_hot(jax.numpy.array([1, 0]), 2).tolist()
        [[0.0, 1.0], [1.0, 0.0]]
    """
    x = jnp.asarray(x)
    dtype = _config.default_float() if dtype is None else _config.canonical(dtype)
    found = (jnp.expand_dims(x, axis=-1) == jnp.arange(num_classes, dtype=x.dtype)).astype(dtype)
    return found if axis in (-1, x.ndim) else jnp.moveaxis(found, -1, axis)
