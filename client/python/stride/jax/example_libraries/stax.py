"""`jax.example_libraries.stax`: layers of networks. A layer is a pair of functions, `init_fun(key, input_shape)`, which
gives the shape of the result and the layer's parameters, and `apply_fun(params, inputs, **kwargs)`."""

import functools
import operator
from typing import Any, Callable, Sequence, Tuple

from stride.jax import lax, nn, numpy as jnp, random
from stride.jax._transforms import ShapeDtypeStruct, eval_shape
from stride.jax.nn.initializers import glorot_normal, normal, ones, zeros

__all__ = [
    "AvgPool", "BatchNorm", "Conv", "Dense", "Dropout", "Elu", "Exp", "FanInConcat", "FanInSum", "FanOut", "Flatten",
    "Gelu", "GeneralConv", "Identity", "LeakyRelu", "LogSoftmax", "MaxPool", "Relu", "Selu", "Sigmoid", "Softmax",
    "Softplus", "SumPool", "Tanh", "elementwise", "parallel", "serial", "shape_dependent",
]  # fmt: skip

Layer = Tuple[Callable, Callable]


def _shape_of(function: Callable, *shapes: Any) -> tuple:
    """The shape that a function gives for arrays of some shapes, of which -1 is any number."""
    given = [tuple(1 if n == -1 else n for n in one) for one in shapes]
    found = eval_shape(function, *[ShapeDtypeStruct(one, "float32") for one in given]).shape
    return tuple(-1 if i == 0 and shapes[0][:1] == (-1,) else n for i, n in enumerate(found))


def Dense(out_dim: int, W_init: Any = None, b_init: Any = None) -> Layer:  # noqa: N802, N803, stax's names
    """A matrix product and a sum with a vector.

    Parameters
        out_dim: elements of each result.
        W_init: initialiser of the matrix; None for `glorot_normal`.
        b_init: initialiser of the vector; None for `normal`.
    Returns
        A layer.
    Example
        >>> from stride import jax
        >>> from stride.jax.example_libraries import stax
        >>> stax.Dense(3)[0](jax.random.key(0), (-1, 5))[0]
        (-1, 3)
    """
    weights, bias = W_init or glorot_normal(), b_init or normal()

    def init_fun(rng: Any, input_shape: Any) -> tuple:
        first, second = random.split(rng)
        params = weights(first, (input_shape[-1], out_dim)), bias(second, (out_dim,))
        return (*input_shape[:-1], out_dim), params

    def apply_fun(params: Any, inputs: Any, **_: Any) -> Any:
        return jnp.dot(inputs, params[0]) + params[1]

    return init_fun, apply_fun


def GeneralConv(  # noqa: N802
    dimension_numbers: Any, out_chan: int, filter_shape: Any, strides: Any = None, padding: Any = "VALID",
    W_init: Any = None, b_init: Any = None,  # noqa: N803
) -> Layer:
    """A convolution and a sum with one number for each channel.

    Parameters
        dimension_numbers: names of the axes of the input, the filter and the result, as `lax.conv_general_dilated` has
            them.
        out_chan: channels of the result.
        filter_shape: the filter's extents.
        strides: of the windows; None for 1.
        padding: SAME, VALID, or pairs.
        W_init, b_init: initialisers, as in `Dense`.
    Returns
        A layer.
    Example
        >>> from stride import jax
        >>> from stride.jax.example_libraries import stax
        >>> stax.GeneralConv(("NHWC", "HWIO", "NHWC"), 4, (3, 3))[0](jax.random.key(0), (1, 8, 8, 2))[0]
        (1, 6, 6, 4)
    """
    lhs_spec, rhs_spec, out_spec = dimension_numbers
    steps = tuple(strides) if strides else (1,) * len(filter_shape)
    weights = W_init or glorot_normal(rhs_spec.index("I"), rhs_spec.index("O"))
    bias = b_init or normal(1e-6)

    def convolved(inputs: Any, filters: Any) -> Any:
        return lax.conv_general_dilated(inputs, filters, steps, padding, dimension_numbers=dimension_numbers)

    def init_fun(rng: Any, input_shape: Any) -> tuple:
        extents = iter(filter_shape)
        channels = input_shape[lhs_spec.index("C")]
        kernel = tuple(out_chan if one == "O" else channels if one == "I" else next(extents) for one in rhs_spec)
        first, second = random.split(rng)
        params = weights(first, kernel), bias(second, tuple(out_chan if one == "C" else 1 for one in out_spec))
        return _shape_of(convolved, input_shape, kernel), params

    def apply_fun(params: Any, inputs: Any, **_: Any) -> Any:
        return convolved(inputs, params[0]) + params[1]

    return init_fun, apply_fun


Conv = functools.partial(GeneralConv, ("NHWC", "HWIO", "NHWC"))


def BatchNorm(  # noqa: N802
    axis: Any = (0, 1, 2), epsilon: float = 1e-5, center: bool = True, scale: bool = True, beta_init: Any = zeros,
    gamma_init: Any = ones,
) -> Layer:
    """Elements minus their mean, divided by their deviation, along some axes.

    Parameters
        axis: an axis, or several.
        epsilon: is added to the variance.
        center, scale: whether the result is moved and multiplied by parameters.
        beta_init, gamma_init: initialisers of these.
    Returns
        A layer.
    Example
        >>> from stride import jax
        >>> from stride.jax.example_libraries import stax
        >>> stax.BatchNorm(axis=0)[0](jax.random.key(0), (4, 2))[0]
        (4, 2)
    """
    axes = (axis,) if jnp.isscalar(axis) else tuple(axis)

    def init_fun(rng: Any, input_shape: Any) -> tuple:
        shape = tuple(n for i, n in enumerate(input_shape) if i not in axes)
        first, second = random.split(rng)
        beta = beta_init(first, shape) if center else ()
        return input_shape, (beta, gamma_init(second, shape) if scale else ())

    def apply_fun(params: Any, x: Any, **_: Any) -> Any:
        beta, gamma = params
        place = tuple(None if i in axes else slice(None) for i in range(jnp.ndim(x)))
        found = nn.standardize(x, axes, epsilon=epsilon)
        found = gamma[place] * found if scale else found
        return found + beta[place] if center else found

    return init_fun, apply_fun


def elementwise(fun: Callable, **fun_kwargs: Any) -> Layer:
    """A layer of a function of arrays, without parameters.

    Parameters
        fun: the function; the shape stays.
        fun_kwargs: its arguments by keyword.
    Returns
        A layer.
    Example
        >>> from stride.jax import numpy as jnp
        >>> from stride.jax.example_libraries import stax
        >>> float(stax.elementwise(jnp.square)[1]((), 3.0))
        9.0
    """
    return (lambda rng, input_shape: (input_shape, ())), (lambda params, inputs, **_: fun(inputs, **fun_kwargs))


Tanh = elementwise(jnp.tanh)
Relu = elementwise(nn.relu)
Exp = elementwise(jnp.exp)
LogSoftmax = elementwise(nn.log_softmax, axis=-1)
Softmax = elementwise(nn.softmax, axis=-1)
Softplus = elementwise(nn.softplus)
Sigmoid = elementwise(nn.sigmoid)
Elu = elementwise(nn.elu)
LeakyRelu = elementwise(nn.leaky_relu)
Selu = elementwise(nn.selu)
Gelu = elementwise(nn.gelu)


def _pooling(reducer: Callable, start: float, finish: Any = None) -> Callable:
    def pool(window_shape: Any, strides: Any = None, padding: str = "VALID", spec: Any = None) -> Layer:
        names = spec or f"N{'HWDEF'[: len(window_shape)]}C"
        steps = tuple(strides) if strides else (1,) * len(window_shape)
        window, by = list(window_shape), list(steps)
        for place in sorted((names.index("N"), names.index("C"))):
            window.insert(place, 1)
            by.insert(place, 1)

        def pooled(inputs: Any) -> Any:
            found = lax.reduce_window(inputs, start, reducer, tuple(window), tuple(by), padding)
            return found if finish is None else finish(found, inputs, tuple(window), tuple(by), padding)

        def init_fun(rng: Any, input_shape: Any) -> tuple:
            return _shape_of(pooled, input_shape), ()

        return init_fun, lambda params, inputs, **_: pooled(inputs)

    return pool


def _by_counts(sums: Any, inputs: Any, window: tuple, steps: tuple, padding: str) -> Any:
    return sums / lax.reduce_window(jnp.ones_like(inputs), 0.0, lax.add, window, steps, padding)


_max_pool, _sum_pool = _pooling(lax.max, -float("inf")), _pooling(lax.add, 0.0)
_avg_pool = _pooling(lax.add, 0.0, _by_counts)


def MaxPool(window_shape: Any, strides: Any = None, padding: str = "VALID", spec: Any = None) -> Layer:  # noqa: N802
    """The greatest element of each window.

    Parameters
        window_shape: the window's extents.
        strides: of the windows; None for 1.
        padding: SAME or VALID.
        spec: names of the axes, of which N and C have no windows; None for N, the window's, C.
    Returns
        A layer.
    Example
        >>> from stride.jax.example_libraries import stax
        >>> stax.MaxPool((2, 2), (2, 2))[0](None, (1, 8, 8, 3))[0]
        (1, 4, 4, 3)
    """
    return _max_pool(window_shape, strides, padding, spec)


def SumPool(window_shape: Any, strides: Any = None, padding: str = "VALID", spec: Any = None) -> Layer:  # noqa: N802
    """The sum of each window.

    Parameters
        window_shape, strides, padding, spec: as in `MaxPool`.
    Returns
        A layer.
    Example
        >>> from stride.jax.example_libraries import stax
        >>> stax.SumPool((2, 2))[0](None, (1, 8, 8, 3))[0]
        (1, 7, 7, 3)
    """
    return _sum_pool(window_shape, strides, padding, spec)


def AvgPool(window_shape: Any, strides: Any = None, padding: str = "VALID", spec: Any = None) -> Layer:  # noqa: N802
    """The mean of each window's elements, without padding.

    Parameters
        window_shape, strides, padding, spec: as in `MaxPool`.
    Returns
        A layer.
    Example
        >>> from stride.jax.example_libraries import stax
        >>> stax.AvgPool((2, 2), padding="SAME")[0](None, (1, 8, 8, 3))[0]
        (1, 8, 8, 3)
    """
    return _avg_pool(window_shape, strides, padding, spec)


def _flatten_init(rng: Any, input_shape: Any) -> tuple:
    return (input_shape[0], functools.reduce(operator.mul, input_shape[1:], 1)), ()


Flatten = _flatten_init, lambda params, inputs, **_: jnp.reshape(inputs, (inputs.shape[0], -1))
Identity = (lambda rng, input_shape: (input_shape, ())), (lambda params, inputs, **_: inputs)


def FanOut(num: int) -> Layer:  # noqa: N802
    """The input, several times.

    Parameters
        num: how often.
    Returns
        A layer whose result is a list.
    Example
        >>> from stride.jax.example_libraries import stax
        >>> stax.FanOut(2)[0](None, (3,))[0]
        [(3,), (3,)]
    """
    return (lambda rng, input_shape: ([input_shape] * num, ())), (lambda params, inputs, **_: [inputs] * num)


FanInSum = (
    (lambda rng, input_shape: (input_shape[0], ())),
    (lambda params, inputs, **_: functools.reduce(operator.add, inputs)),
)


def FanInConcat(axis: int = -1) -> Layer:  # noqa: N802
    """Several inputs, one after another along an axis.

    Parameters
        axis: the axis.
    Returns
        A layer of lists.
    Example
        >>> from stride.jax.example_libraries import stax
        >>> stax.FanInConcat()[0](None, [(4, 3), (4, 5)])[0]
        (4, 8)
    """

    def init_fun(rng: Any, input_shape: Any) -> tuple:
        place = axis % len(input_shape[0])
        total = sum(shape[place] for shape in input_shape)
        return (*input_shape[0][:place], total, *input_shape[0][place + 1 :]), ()

    return init_fun, lambda params, inputs, **_: jnp.concatenate(inputs, axis)


def Dropout(rate: float, mode: str = "train") -> Layer:  # noqa: N802
    """Zeros in random places, and the other elements divided by the share that is kept.

    Parameters
        rate: the share that is kept.
        mode: train, else the input is the result.
    Returns
        A layer, whose `apply_fun` takes `rng`.
    Raises
        ValueError where `rng` is not given.
    Example
        >>> from stride.jax.example_libraries import stax
        >>> stax.Dropout(0.5, "test")[1]((), 3.0)
        3.0
    """

    def apply_fun(params: Any, inputs: Any, **kwargs: Any) -> Any:
        if mode != "train":
            return inputs
        rng = kwargs.get("rng")
        if rng is None:
            raise ValueError(
                "Dropout layer requires apply_fun to be called with a PRNG key argument: apply_fun(params, inputs, "
                "rng=key)"
            )
        return jnp.where(random.bernoulli(rng, rate, inputs.shape), inputs / rate, 0)

    return (lambda rng, input_shape: (input_shape, ())), apply_fun


def serial(*layers: Layer) -> Layer:
    """Layers one after another.

    Parameters
        layers: the layers.
    Returns
        A layer.
    Example
        >>> from stride import jax
        >>> from stride.jax.example_libraries import stax
        >>> init, apply = stax.serial(stax.Dense(4), stax.Relu, stax.Dense(2), stax.LogSoftmax)
        >>> shape, params = init(jax.random.key(0), (-1, 3))
        >>> shape, apply(params, jax.numpy.ones((5, 3))).shape
        ((-1, 2), (5, 2))
    """

    def init_fun(rng: Any, input_shape: Any) -> tuple:
        params = []
        for init, _ in layers:
            rng, own = random.split(rng)
            input_shape, found = init(own, input_shape)
            params.append(found)
        return input_shape, params

    def apply_fun(params: Any, inputs: Any, **kwargs: Any) -> Any:
        for (_, apply), own, rng in zip(layers, params, _keys(kwargs.pop("rng", None), len(layers))):
            inputs = apply(own, inputs, rng=rng, **kwargs)
        return inputs

    return init_fun, apply_fun


def parallel(*layers: Layer) -> Layer:
    """Layers each on an input of its own.

    Parameters
        layers: the layers.
    Returns
        A layer of lists.
    Example
        >>> from stride import jax
        >>> from stride.jax.example_libraries import stax
        >>> stax.parallel(stax.Dense(4), stax.Dense(2))[0](jax.random.key(0), [(-1, 3), (-1, 5)])[0]
        [(-1, 4), (-1, 2)]
    """

    def init_fun(rng: Any, input_shape: Sequence[Any]) -> tuple:
        made = [init(key, shape) for (init, _), key, shape in zip(layers, _keys(rng, len(layers)), input_shape)]
        return [shape for shape, _ in made], [params for _, params in made]

    def apply_fun(params: Any, inputs: Any, **kwargs: Any) -> list:
        keys = _keys(kwargs.pop("rng", None), len(layers))
        return [apply(p, x, rng=key, **kwargs) for (_, apply), p, x, key in zip(layers, params, inputs, keys)]

    return init_fun, apply_fun


def _keys(rng: Any, count: int) -> list:
    return [None] * count if rng is None else list(random.split(rng, count))


def shape_dependent(make_layer: Callable) -> Layer:
    """A layer that a function makes of the input's shape.

    Parameters
        make_layer: the function.
    Returns
        A layer.
    Example
        >>> from stride import jax
        >>> from stride.jax.example_libraries import stax
        >>> stax.shape_dependent(lambda shape: stax.Dense(shape[-1]))[0](jax.random.key(0), (-1, 3))[0]
        (-1, 3)
    """

    def init_fun(rng: Any, input_shape: Any) -> tuple:
        return make_layer(input_shape)[0](rng, input_shape)

    def apply_fun(params: Any, inputs: Any, **kwargs: Any) -> Any:
        return make_layer(inputs.shape)[1](params, inputs, **kwargs)

    return init_fun, apply_fun
