"""`jax.nn.initializers`: functions of (key, shape, dtype) that make the first parameters of a network."""

import math
from typing import Any, Callable

from stride.jax import _config, numpy as jnp, random

__all__ = [
    "constant", "glorot_normal", "glorot_uniform", "he_normal", "he_uniform", "kaiming_normal", "kaiming_uniform",
    "lecun_normal", "lecun_uniform", "normal", "ones", "orthogonal", "uniform", "variance_scaling", "xavier_normal",
    "xavier_uniform", "zeros",
]  # fmt: skip


def zeros(key: Any, shape: Any, dtype: Any = None) -> Any:
    """Zeros.

    Parameters
        key: accepted.
        shape, dtype: the result's.
    Returns
        An array.
    Example
        >>> from stride import jax
        >>> jax.nn.initializers.zeros(None, (2,)).tolist()
        [0.0, 0.0]
    """
    return jnp.zeros(shape, dtype=_config.default_float() if dtype is None else dtype)


def ones(key: Any, shape: Any, dtype: Any = None) -> Any:
    """Ones.

    Parameters
        key: accepted.
        shape, dtype: the result's.
    Returns
        An array.
    Example
        >>> from stride import jax
        >>> jax.nn.initializers.ones(None, (2,)).tolist()
        [1.0, 1.0]
    """
    return jnp.ones(shape, dtype=_config.default_float() if dtype is None else dtype)


def constant(value: Any, dtype: Any = None) -> Callable:
    """One value.

    Parameters
        value: the number.
        dtype: the default element type.
    Returns
        A function of (key, shape, dtype).
    Example
        >>> from stride import jax
        >>> jax.nn.initializers.constant(2.0)(None, (1,)).tolist()
        [2.0]
    """
    return lambda key, shape, dtype=dtype: jnp.full(
        shape, value, dtype=_config.default_float() if dtype is None else dtype)


def uniform(scale: Any = 1e-2, dtype: Any = None) -> Callable:
    """Uniform numbers from 0 to `scale`.

    Parameters
        scale: the bound.
        dtype: the default element type.
    Returns
        A function of (key, shape, dtype).
    Example
        >>> from stride import jax
        >>> jax.nn.initializers.uniform()(jax.random.key(0), (2,)).shape
        (2,)
    """
    return lambda key, shape, dtype=dtype: random.uniform(key, shape, dtype) * scale


def normal(stddev: Any = 1e-2, dtype: Any = None) -> Callable:
    """Normal numbers.

    Parameters
        stddev: their deviation.
        dtype: the default element type.
    Returns
        A function of (key, shape, dtype).
    Example
        >>> from stride import jax
        >>> jax.nn.initializers.normal()(jax.random.key(0), (2,)).shape
        (2,)
    """
    return lambda key, shape, dtype=dtype: random.normal(key, shape, dtype) * stddev


def orthogonal(scale: Any = 1.0, column_axis: int = -1, dtype: Any = None) -> Callable:
    """Orthogonal matrices.

    Parameters
        scale: a factor.
        column_axis: must be -1.
        dtype: the default element type.
    Returns
        A function of (key, shape, dtype).
    Example
        >>> from stride import jax
        >>> jax.nn.initializers.orthogonal()(jax.random.key(0), (2, 2)).shape
        (2, 2)
    """
    if column_axis != -1:
        raise NotImplementedError("orthogonal has column_axis=-1 alone")

    def init(key: Any, shape: Any, dtype: Any = dtype) -> Any:
        return scale * random.orthogonal(key, math.prod(shape[:-1]), (), dtype, shape[-1]).reshape(shape)

    return init


def variance_scaling(
    scale: Any, mode: str, distribution: str, in_axis: int = -2, out_axis: int = -1, batch_axis: Any = (),
    dtype: Any = None,
) -> Callable:
    """Numbers whose variance is `scale` divided by the number of inputs, outputs, or their mean.

    Parameters
        scale: a number.
        mode: fan_in, fan_out or fan_avg.
        distribution: truncated_normal, normal or uniform.
        in_axis, out_axis: the axes of inputs and outputs.
        batch_axis: must be empty.
        dtype: the default element type.
    Returns
        A function of (key, shape, dtype).
    Raises
        ValueError for another mode or distribution.
    Example
        >>> from stride import jax
        >>> init = jax.nn.initializers.variance_scaling(1.0, "fan_in", "normal")
        >>> init(jax.random.key(0), (2, 3)).shape
        (2, 3)
    """

    def init(key: Any, shape: Any, dtype: Any = dtype) -> Any:
        ins, outs = shape[in_axis], shape[out_axis]
        receptive = math.prod(shape) / (ins * outs)
        fans = {"fan_in": ins * receptive, "fan_out": outs * receptive, "fan_avg": (ins + outs) * receptive / 2}
        if mode not in fans:
            raise ValueError(f"invalid mode for variance scaling initializer: {mode}")
        variance = scale / fans[mode]
        if distribution == "normal":
            return random.normal(key, shape, dtype) * math.sqrt(variance)
        if distribution == "uniform":
            return random.uniform(key, shape, dtype, -1) * math.sqrt(3 * variance)
        if distribution == "truncated_normal":
            # The deviation of a standard normal number between -2 and 2.
            return random.truncated_normal(key, -2, 2, shape, dtype) * (math.sqrt(variance) / 0.87962566103423978)
        raise ValueError(f"invalid distribution for variance scaling initializer: {distribution}")

    return init


def _scaled(name: str, scale: float, mode: str, distribution: str) -> Callable:
    def make(in_axis: int = -2, out_axis: int = -1, batch_axis: Any = (), dtype: Any = None) -> Callable:
        return variance_scaling(scale, mode, distribution, in_axis, out_axis, batch_axis, dtype)

    make.__name__ = make.__qualname__ = name
    make.__doc__ = f"""`variance_scaling({scale}, {mode!r}, {distribution!r})`.

    Parameters
        in_axis, out_axis, batch_axis, dtype: as there.
    Returns
        A function of (key, shape, dtype).
    Example
        >>> from stride import jax
        >>> jax.nn.initializers.{name}()(jax.random.key(0), (2, 2)).shape
        (2, 2)
    """
    return make


glorot_uniform = xavier_uniform = _scaled("glorot_uniform", 1.0, "fan_avg", "uniform")
glorot_normal = xavier_normal = _scaled("glorot_normal", 1.0, "fan_avg", "truncated_normal")
lecun_uniform = _scaled("lecun_uniform", 1.0, "fan_in", "uniform")
lecun_normal = _scaled("lecun_normal", 1.0, "fan_in", "truncated_normal")
he_uniform = kaiming_uniform = _scaled("he_uniform", 2.0, "fan_in", "uniform")
he_normal = kaiming_normal = _scaled("he_normal", 2.0, "fan_in", "truncated_normal")
