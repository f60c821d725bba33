"""`jax.lax` on arrays of JAX's kind: `stride.lax`'s functions, whose bodies are called with such arrays, and windows,
convolutions, gather and scatter."""

import builtins as _builtins
import functools
import itertools
import math
from typing import Any, Callable, NamedTuple, Optional, Sequence, Tuple

import numpy as np

import stride as _st
from stride import _errors, lax as _lax
from stride.jax import _custom_gradients, _special
from stride.jax._array import as_jax, given, inside
from stride.jax._config import canonical

_BODIES = ("associative_scan", "cond", "fori_loop", "map", "scan", "switch", "while_loop")


def _wrapped(name: str, function: Callable) -> Callable:
    @functools.wraps(function)
    def call(*arguments: Any, **options: Any) -> Any:
        options.pop("precision", None)
        if name not in ("dot", "dot_general"):
            options.pop("preferred_element_type", None)
        options.pop("out_sharding", None)
        keywords = {key: _given(one) for key, one in options.items()}
        return as_jax(function(*[_given(one) for one in arguments], **keywords))

    return call


def _given(value: Any) -> Any:
    if callable(value) and not isinstance(value, (_st.Array, type)):
        return inside(value)
    if isinstance(value, (list, tuple)) and value and all(callable(one) for one in value):
        return type(value)([inside(one) for one in value])
    return given(value)


for _name in _lax.__all__:
    _one = getattr(_lax, _name)
    globals()[_name] = _wrapped(_name, _one) if callable(_one) and not isinstance(_one, type) else _one

stop_gradient = _custom_gradients.stop_gradient
erf, erfc, erf_inv, lgamma, digamma = (
    _special.erf, _special.erfc, _special.erf_inv, _special.gammaln, _special.digamma,
)  # fmt: skip



class Precision:
    """Names that change nothing: products are computed in the operands' type.

    Example
        >>> from stride import jax
        >>> jax.lax.Precision.HIGHEST
        'highest'
    """

    DEFAULT, HIGH, HIGHEST = "default", "high", "highest"


class ConvDimensionNumbers(NamedTuple):
    """Places of the axes: batch, feature, then the spatial ones; of the kernel output and input features first."""

    lhs_spec: Tuple[int, ...]
    rhs_spec: Tuple[int, ...]
    out_spec: Tuple[int, ...]


def conv_dimension_numbers(lhs_shape: Sequence[int], rhs_shape: Sequence[int], dimension_numbers: Any) -> Any:
    """Places of axes from their letters.

    Parameters
        lhs_shape, rhs_shape: the shapes of both operands.
        dimension_numbers: None, ConvDimensionNumbers, or three strings such as ("NHWC", "HWIO", "NHWC").
    Returns
        ConvDimensionNumbers.
    Raises
        TypeError for strings that do not fit.
    Example
        >>> from stride import jax
        >>> jax.lax.conv_dimension_numbers((1, 1, 4), (1, 1, 2), ("NHC", "HIO", "NHC")).lhs_spec
        (0, 2, 1)
    """
    rank = len(lhs_shape)
    if isinstance(dimension_numbers, ConvDimensionNumbers):
        return dimension_numbers
    if dimension_numbers is None:
        places = tuple(range(rank))
        return ConvDimensionNumbers(places, places, places)
    lhs, rhs, out = dimension_numbers
    if any(len(one) != rank for one in (lhs, rhs, out)):
        raise TypeError(f"convolution dimension_numbers {dimension_numbers} do not fit operands of {rank} axes")
    spatial = [one for one in rhs if one not in "OI"]

    def places(text: str, first: str) -> Tuple[int, ...]:
        return (text.index(first[0]), text.index(first[1]), *[text.index(one) for one in spatial])

    return ConvDimensionNumbers(places(lhs, "NC"), places(rhs, "OI"), places(out, "NC"))


def padtype_to_pads(in_shape: Any, window_shape: Any, window_strides: Any, padding: Any) -> list:
    """Elements to put before and after each axis.

    Parameters
        in_shape, window_shape, window_strides: for each axis the length, and the window's length and step.
        padding: SAME, SAME_LOWER or VALID.
    Returns
        A list of pairs.
    Raises
        RuntimeError for another text.
    Example
        >>> from stride import jax
        >>> jax.lax.padtype_to_pads((4,), (3,), (1,), "SAME")
        [(1, 1)]
    """
    if padding.upper() == "VALID":
        return [(0, 0)] * len(in_shape)
    if padding.upper() not in ("SAME", "SAME_LOWER"):
        raise RuntimeError(f"Unrecognized padding type: expected 'VALID' or 'SAME', got {padding!r}")
    pads = []
    for n, window, step in zip(in_shape, window_shape, window_strides):
        total = _builtins.max((-(-n // step) - 1) * step + window - n, 0)
        small, large = total // 2, total - total // 2
        pads.append((small, large) if padding.upper() == "SAME" else (large, small))
    return pads


def _windows(x: Any, sizes: Sequence[int], steps: Sequence[int], dilations: Sequence[int]) -> Tuple[list, tuple]:
    """For each place in a window the elements there of all windows, of a padded array whose last axes are the
    windows'; and how many windows there are."""
    rank = len(sizes)
    lead = x.ndim - rank
    counts = tuple(
        _builtins.max(0, (n - ((size - 1) * dilation + 1)) // step + 1)
        for n, size, step, dilation in zip(x.shape[lead:], sizes, steps, dilations)
    )
    parts = []
    for place in itertools.product(*_builtins.map(range, sizes)):
        key = [_builtins.slice(None)] * lead
        for at, step, dilation, count in zip(place, steps, dilations, counts):
            start = at * dilation
            key.append(_builtins.slice(start, start + (count - 1) * step + 1 if count else start, step))
        parts.append(x[tuple(key)])
    return parts, counts


def conv_general_dilated(
    lhs: Any, rhs: Any, window_strides: Sequence[int], padding: Any, lhs_dilation: Any = None, rhs_dilation: Any = None,
    dimension_numbers: Any = None, feature_group_count: int = 1, batch_group_count: int = 1, precision: Any = None,
    preferred_element_type: Any = None, out_sharding: Any = None,
) -> Any:
    """The convolution of images with a kernel, which is not flipped: one product of matrices.

    Parameters
        lhs: the images: batch, feature and spatial axes.
        rhs: the kernel: output feature, input feature and spatial axes.
        window_strides: for each spatial axis the step.
        padding: SAME, SAME_LOWER, VALID, or a pair for each spatial axis.
        lhs_dilation, rhs_dilation: for each spatial axis the distance of elements; None for 1.
        dimension_numbers: where the axes are, as in `conv_dimension_numbers`.
        feature_group_count: groups of features, which are convolved apart.
        batch_group_count: must be 1.
        precision, preferred_element_type, out_sharding: change nothing.
    Returns
        An array.
    Raises
        TypeError and ValueError for shapes that do not fit; Unimplemented for groups of the batch.
    Example
        >>> from stride import jax
        >>> jnp = jax.numpy
        >>> jax.lax.conv_general_dilated(jnp.arange(4.0).reshape(1, 1, 4), jnp.ones((1, 1, 2)), (1,), "VALID").tolist()
        [[[1.0, 3.0, 5.0]]]
    """
    if batch_group_count != 1:
        raise _errors.Unimplemented("lax.conv_general_dilated has no batch_group_count", reason="NOT_IMPLEMENTED",
                                    metadata={"feature": "batch_group_count"})
    x, kernel = given(lhs), given(rhs)
    if x.dtype != kernel.dtype:
        raise TypeError(f"lax.conv_general_dilated requires arguments to have the same dtypes, got {x.dtype}, "
                        f"{kernel.dtype}.")
    numbers = conv_dimension_numbers(x.shape, kernel.shape, dimension_numbers)
    rank = x.ndim - 2
    x = _st.permute_dims(x, numbers.lhs_spec)
    kernel = _st.permute_dims(kernel, numbers.rhs_spec)
    if x.shape[1] != kernel.shape[1] * feature_group_count:
        raise ValueError(
            f"conv_general_dilated lhs feature dimension size divided by feature_group_count must equal the rhs input "
            f"feature dimension size, but {x.shape[1]} // {feature_group_count} != {kernel.shape[1]}."
        )
    spread = (1,) * rank if lhs_dilation is None else tuple(lhs_dilation)
    dilations = (1,) * rank if rhs_dilation is None else tuple(rhs_dilation)
    steps = tuple(window_strides)
    sizes = kernel.shape[2:]
    inner = [(n - 1) * between + 1 if n else 0 for n, between in zip(x.shape[2:], spread)]
    if isinstance(padding, str):
        covered = [(size - 1) * dilation + 1 for size, dilation in zip(sizes, dilations)]
        padding = padtype_to_pads(inner, covered, steps, padding)
    config = [(0, 0, 0)] * 2 + [(low, high, between - 1) for (low, high), between in zip(padding, spread)]
    if any(one != (0, 0, 0) for one in config):
        x = _lax.pad(x, np.zeros((), x.dtype)[()], config)
    parts, counts = _windows(x, sizes, steps, dilations)
    batch, groups, out = x.shape[0], feature_group_count, kernel.shape[0]
    features = kernel.shape[1]
    # (batch, groups, features, places, windows) times (groups, out of a group, features, places).
    patches = _st.reshape(_st.stack(parts, axis=2), (batch, groups, features * len(parts), math.prod(counts)))
    weights = _st.reshape(kernel, (1, groups, out // groups, features * len(parts)))
    result = _st.reshape(_st.matmul(weights, patches), (batch, out, *counts))
    return as_jax(_st.permute_dims(result, tuple(int(i) for i in np.argsort(numbers.out_spec))))


def conv(lhs: Any, rhs: Any, window_strides: Any, padding: Any, precision: Any = None, **_: Any) -> Any:
    """As `conv_general_dilated`, of axes in the usual order.

    Parameters
        lhs, rhs: images (N, C, ...) and a kernel (O, I, ...).
        window_strides, padding, precision: as there.
    Returns
        An array.
    Example
        >>> from stride import jax
        >>> jnp = jax.numpy
        >>> jax.lax.conv(jnp.ones((1, 1, 3)), jnp.ones((1, 1, 3)), (1,), "VALID").tolist()
        [[[3.0]]]
    """
    return conv_general_dilated(lhs, rhs, window_strides, padding)


def conv_with_general_padding(
    lhs: Any, rhs: Any, window_strides: Any, padding: Any, lhs_dilation: Any, rhs_dilation: Any, **_: Any
) -> Any:
    """As `conv_general_dilated`, of axes in the usual order.

    Parameters
        lhs, rhs: images (N, C, ...) and a kernel (O, I, ...).
        window_strides, padding, lhs_dilation, rhs_dilation: as there.
    Returns
        An array.
    Example
        >>> from stride import jax
        >>> jnp = jax.numpy
        >>> one = jnp.ones((1, 1, 3))
        >>> jax.lax.conv_with_general_padding(one, one, (1,), ((1, 0),), None, None).tolist()
        [[[2.0, 3.0]]]
    """
    return conv_general_dilated(lhs, rhs, window_strides, padding, lhs_dilation, rhs_dilation)


_COMBINERS = {"add": "add", "max": "maximum", "min": "minimum", "mul": "multiply", "maximum": "maximum",
              "minimum": "minimum", "multiply": "multiply"}


def reduce_window(
    operand: Any, init_value: Any, computation: Callable, window_dimensions: Any, window_strides: Any, padding: Any,
    base_dilation: Any = None, window_dilation: Any = None,
) -> Any:
    """A reduction over windows.

    Parameters
        operand: an array.
        init_value: the reduction's start, also the value around the array.
        computation: a function of two arrays, such as `lax.add` or `lax.max`.
        window_dimensions, window_strides: for each axis the window's length and step.
        padding: SAME, VALID, or a pair for each axis.
        base_dilation, window_dilation: for each axis the distance of elements; None for 1.
    Returns
        An array.
    Example
        >>> from stride import jax
        >>> jax.lax.reduce_window(jax.numpy.arange(4), 0, jax.lax.add, (2,), (1,), "VALID").tolist()
        [1, 3, 5]
    """
    x = given(operand)
    rank = x.ndim
    spread = (1,) * rank if base_dilation is None else tuple(base_dilation)
    dilations = (1,) * rank if window_dilation is None else tuple(window_dilation)
    sizes, steps = tuple(window_dimensions), tuple(window_strides)
    if isinstance(padding, str):
        inner = [(n - 1) * between + 1 if n else 0 for n, between in zip(x.shape, spread)]
        covered = [(size - 1) * dilation + 1 for size, dilation in zip(sizes, dilations)]
        padding = padtype_to_pads(inner, covered, steps, padding)
    start = np.asarray(init_value).astype(x.dtype)[()]
    x = _lax.pad(x, start, [(low, high, between - 1) for (low, high), between in zip(padding, spread)])
    parts, counts = _windows(x, sizes, steps, dilations)
    name = _COMBINERS.get(getattr(computation, "__name__", ""))
    if name is not None:
        pick: Callable = getattr(_st, name)
    else:
        combine = inside(computation)

        def pick(one: Any, other: Any) -> Any:
            return given(combine(one, other))

    while len(parts) > 1:  # by pairs, so that sums lose little
        parts = [pick(*parts[i : i + 2]) if i + 1 < len(parts) else parts[i] for i in range(0, len(parts), 2)]
    neutral = {"add": 0, "multiply": 1}.get(name or "")
    result = parts[0]
    if neutral is None and name in ("maximum", "minimum") or neutral != start:
        result = pick(result, _st.asarray(start))
    return as_jax(result.astype(x.dtype))


def reduce(operands: Any, init_values: Any, computation: Callable, dimensions: Sequence[int]) -> Any:
    """A reduction by a function over axes.

    Parameters
        operands: an array.
        init_values: where the reduction starts.
        computation: a function of two arrays, associative.
        dimensions: the axes.
    Returns
        An array.
    Example
        >>> from stride import jax
        >>> jax.lax.reduce(jax.numpy.arange(4), 0, jax.lax.add, (0,)).tolist()
        6
    """
    x = given(operands)
    axes = tuple(dimensions)
    kept = [i for i in range(x.ndim) if i not in axes]
    x = _st.reshape(_st.permute_dims(x, (*axes, *kept)), (-1, *[x.shape[i] for i in kept]))
    combine = inside(computation)
    start = _st.broadcast_to(_st.asarray(np.asarray(init_values).astype(x.dtype)), x.shape[1:])
    while x.shape[0] > 1:
        half = x.shape[0] // 2
        joined = given(combine(x[:half], x[half : 2 * half]))
        x = joined if x.shape[0] % 2 == 0 else _st.concatenate([joined, x[2 * half :]])
    return as_jax(given(combine(start, x[0])) if x.shape[0] else start)


class GatherDimensionNumbers(NamedTuple):
    """Which axes `gather` takes."""

    offset_dims: Tuple[int, ...]
    collapsed_slice_dims: Tuple[int, ...]
    start_index_map: Tuple[int, ...]
    operand_batching_dims: Tuple[int, ...] = ()
    start_indices_batching_dims: Tuple[int, ...] = ()


class ScatterDimensionNumbers(NamedTuple):
    """Which axes `scatter` writes."""

    update_window_dims: Tuple[int, ...]
    inserted_window_dims: Tuple[int, ...]
    scatter_dims_to_operand_dims: Tuple[int, ...]
    operand_batching_dims: Tuple[int, ...] = ()
    scatter_indices_batching_dims: Tuple[int, ...] = ()


def _places(
    shape: Any, indices: Any, map_: Any, sizes: Sequence[int], collapsed: Any, batch: Any, of_batch: Any
) -> list:
    """For each axis of an operand the places, of shape (batch of the indices..., window...)."""
    lead = indices.shape[:-1]
    kept = [i for i in range(len(shape)) if i not in collapsed and i not in batch]
    window = [sizes[i] for i in kept]
    found = []
    for axis, n in enumerate(shape):
        place = None
        if axis in map_:
            start = indices[..., tuple(map_).index(axis)].astype(np.int64)
            place = _st.reshape(start, (*lead, *(1,) * len(window)))
        elif axis in batch:
            at = tuple(of_batch)[tuple(batch).index(axis)]
            place = _st.reshape(_st.arange(n), tuple(n if i == at else 1 for i in range(len(lead) + len(window))))
        if axis in kept:
            at = len(lead) + kept.index(axis)
            offsets = _st.reshape(_st.arange(sizes[axis]), tuple(
                sizes[axis] if i == at else 1 for i in range(len(lead) + len(window))))
            place = offsets if place is None else place + offsets
        found.append(_st.asarray(0) if place is None else place)
    return found


def gather(
    operand: Any, start_indices: Any, dimension_numbers: GatherDimensionNumbers, slice_sizes: Sequence[int], *,
    unique_indices: bool = False, indices_are_sorted: bool = False, mode: Any = None, fill_value: Any = None,
) -> Any:
    """Windows of an array from places; a window that is not within the array is moved into it.

    Parameters
        operand: an array.
        start_indices: the places, along the last axis.
        dimension_numbers: which axes are which.
        slice_sizes: for each axis the window's length.
        unique_indices, indices_are_sorted: change nothing.
        mode: None, clip or promise_in_bounds.
        fill_value: must be None.
    Returns
        An array.
    Raises
        Unimplemented for mode fill.
    Example
        >>> from stride import jax
        >>> numbers = jax.lax.GatherDimensionNumbers((), (0,), (0,))
        >>> jax.lax.gather(jax.numpy.arange(4), jax.numpy.array([[2], [0]]), numbers, (1,)).tolist()
        [2, 0]
    """
    text = getattr(mode, "name", mode)
    if text is not None and str(text).lower() not in ("clip", "promise_in_bounds"):
        raise _errors.Unimplemented(f"lax.gather has no mode {mode}", reason="NOT_IMPLEMENTED",
                                    metadata={"feature": "lax.gather mode"})
    x, indices = given(operand), given(start_indices)
    limits = _st.asarray(np.array([x.shape[i] - slice_sizes[i] for i in dimension_numbers.start_index_map], np.int64))
    indices = _st.minimum(_st.maximum(indices.astype(np.int64), 0), limits)
    numbers = dimension_numbers
    places = _places(x.shape, indices, numbers.start_index_map, slice_sizes, numbers.collapsed_slice_dims,
                     numbers.operand_batching_dims, numbers.start_indices_batching_dims)
    result = x[tuple(places)]
    rank = result.ndim
    windows = list(numbers.offset_dims)
    lead = [i for i in range(rank) if i not in windows]
    order = [lead.index(i) if i in lead else len(lead) + windows.index(i) for i in range(rank)]
    return as_jax(_st.permute_dims(result, tuple(order)))


def _scattering(name: str, method: str) -> Callable:
    def scatter_(
        operand: Any, scatter_indices: Any, updates: Any, dimension_numbers: ScatterDimensionNumbers, *,
        indices_are_sorted: bool = False, unique_indices: bool = False, mode: Any = None,
    ) -> Any:
        x, indices, values = given(operand), given(scatter_indices), given(updates)
        numbers = dimension_numbers
        window = list(numbers.update_window_dims)
        lead = [i for i in range(values.ndim) if i not in window]
        values = _st.permute_dims(values, (*lead, *window))
        kept = [i for i in range(x.ndim)
                if i not in numbers.inserted_window_dims and i not in numbers.operand_batching_dims]
        sizes = [1] * x.ndim
        for i, axis in enumerate(kept):
            sizes[axis] = values.shape[len(lead) + i]
        limits = _st.asarray(np.array([x.shape[i] - sizes[i] for i in numbers.scatter_dims_to_operand_dims], np.int64))
        indices = indices.astype(np.int64)
        inside_ = _st.all((indices >= 0) & (indices <= limits), axis=-1, keepdims=True)
        if str(getattr(mode, "name", mode)).lower() == "clip":
            indices = _st.minimum(_st.maximum(indices, 0), limits)
        else:  # a window that is not within the array is dropped: out of range as a whole
            indices = _st.where(inside_, indices, _builtins.max(x.shape, default=0) + 1)
        places = _places(x.shape, indices, numbers.scatter_dims_to_operand_dims, sizes, numbers.inserted_window_dims,
                         numbers.operand_batching_dims, numbers.scatter_indices_batching_dims)
        return as_jax(getattr(x.at[tuple(places)], method)(values.astype(x.dtype)))

    scatter_.__name__ = scatter_.__qualname__ = name
    scatter_.__doc__ = f"""An array with windows at places {'set' if method == 'set' else 'updated by ' + method}.

    Parameters
        operand: an array.
        scatter_indices: the places, along the last axis.
        updates: the windows.
        dimension_numbers: which axes are which.
        indices_are_sorted, unique_indices: change nothing.
        mode: clip moves a window that is not within the array; else it is dropped.
    Returns
        An array.
    Example
        >>> from stride import jax
        >>> numbers = jax.lax.ScatterDimensionNumbers((), (0,), (0,))
        >>> jnp = jax.numpy
        >>> jax.lax.{name}(jnp.ones(2), jnp.array([[1]]), jnp.array([2.0]), numbers).shape
        (2,)
    """
    return scatter_


scatter, scatter_add = _scattering("scatter", "set"), _scattering("scatter_add", "add")
scatter_mul, scatter_min = _scattering("scatter_mul", "multiply"), _scattering("scatter_min", "min")
scatter_max = _scattering("scatter_max", "max")


def iota(dtype: Any, size: int) -> Any:
    """The integers from 0.

    Parameters
        dtype: the element type.
        size: how many.
    Returns
        An array.
    Example
        >>> from stride import jax
        >>> jax.lax.iota("int32", 3).tolist()
        [0, 1, 2]
    """
    return as_jax(_st.arange(size, dtype=canonical(dtype)))


def broadcasted_iota(dtype: Any, shape: Sequence[int], dimension: int) -> Any:
    """The integers from 0 along an axis, the same along all others.

    Parameters
        dtype: the element type.
        shape: the result's.
        dimension: the axis.
    Returns
        An array.
    Example
        >>> from stride import jax
        >>> jax.lax.broadcasted_iota("int32", (2, 2), 1).tolist()
        [[0, 1], [0, 1]]
    """
    column = tuple(n if i == dimension else 1 for i, n in enumerate(shape))
    values = _st.reshape(_st.arange(shape[dimension], dtype=canonical(dtype)), column)
    return as_jax(_st.copy(_st.broadcast_to(values, tuple(shape))))


__all__ = sorted({name for name in globals() if not name.startswith("_")} - {
    "functools", "itertools", "math", "np", "Any", "Callable", "NamedTuple", "Optional", "Sequence", "Tuple", "as_jax",
    "given", "inside", "canonical"})


def __getattr__(name: str) -> Any:
    return getattr(_lax, name)
