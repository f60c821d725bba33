"""JAX's slices, of static and of dynamic starts."""

import operator
from typing import Any, List, Optional, Sequence

import numpy as np

from stride import _casts, _creation, _manipulation, _routines
from stride._array import Array, array_of
from stride.lax import _shapes
from stride.lax._kinds import _is_unknown, _is_value, _shape
from stride.lax._operators import _array, _operands

__all__ = [
    "dynamic_index_in_dim", "dynamic_slice", "dynamic_slice_in_dim", "dynamic_update_index_in_dim",
    "dynamic_update_slice", "dynamic_update_slice_in_dim", "index_in_dim", "slice", "slice_in_dim", "split",
]

_slice = slice


def split(operand: Any, sizes: Sequence[int], axis: int = 0) -> List[Array]:
    """Parts of these sizes along an axis.

    Parameters
        operand: an array.
        sizes: the lengths of the parts, whose sum is the axis's.
        axis: the axis.
    Returns
        A list of arrays.
    Example
        >>> [one.tolist() for one in stride.lax.split(st.arange(3), (1, 2))]
        [[0], [1, 2]]
    """
    x = _array("split", operand)
    if not 0 <= axis < x.ndim or sum(sizes) != x.shape[axis]:
        raise ValueError(
            f"lax.split: sizes {tuple(sizes)} along axis {axis} do not make up an array of shape {x.shape}"
        )
    ends = np.cumsum([0, *sizes])
    return [slice_in_dim(x, int(begin), int(end), axis=axis) for begin, end in zip(ends, ends[1:])]


def slice(  # noqa: A001
    operand: Any, start_indices: Sequence[int], limit_indices: Sequence[int], strides: Optional[Sequence[int]] = None
) -> Array:
    """The elements from places to before others, at steps.

    Parameters
        operand: an array.
        start_indices: for each axis the first place.
        limit_indices: for each axis the place to stop before.
        strides: for each axis the step; None for 1.
    Returns
        An array.
    Example
        >>> stride.lax.slice(st.arange(5), (1,), (4,)).tolist()
        [1, 2, 3]
    """
    x = _array("slice", operand)
    starts, limits = tuple(start_indices), tuple(limit_indices)
    steps = (1,) * x.ndim if strides is None else tuple(strides)
    if not len(starts) == len(limits) == len(steps) == x.ndim:
        raise TypeError(f"lax.slice: an array of {x.ndim} axes takes as many starts, limits and strides")
    if any(not 0 <= start <= limit <= n or step < 1 for start, limit, step, n in zip(starts, limits, steps, x.shape)):
        raise TypeError(f"lax.slice: {starts} to {limits} by {steps} is not within an array of shape {x.shape}")
    return x[tuple(map(_slice, starts, limits, steps))]


def slice_in_dim(
    operand: Any, start_index: Optional[int], limit_index: Optional[int], stride: int = 1, axis: int = 0
) -> Array:
    """As `slice`, along one axis; as Python's slices, negative places count from the end.

    Parameters
        operand: an array.
        start_index: the first place; None for the begin.
        limit_index: the place to stop before; None for the end.
        stride: the step.
        axis: the axis.
    Returns
        An array.
    Example
        >>> stride.lax.slice_in_dim(st.arange(5), 1, None, stride=2).tolist()
        [1, 3]
    """
    x = _array("slice_in_dim", operand)
    axis = _axis_of("slice_in_dim", x, axis)
    return x[(_slice(None),) * axis + (_slice(start_index, limit_index, stride),)]


def index_in_dim(operand: Any, index: int, axis: int = 0, keepdims: bool = True) -> Array:
    """One element along an axis.

    Parameters
        operand: an array.
        index: an integer; a negative one counts from the end.
        axis: the axis.
        keepdims: whether the axis stays, with one element.
    Returns
        An array.
    Example
        >>> stride.lax.index_in_dim(st.arange(5), -1, keepdims=False).tolist()
        4
    """
    x = _array("index_in_dim", operand)
    axis, index = _axis_of("index_in_dim", x, axis), operator.index(index)
    if not -x.shape[axis] <= index < x.shape[axis]:
        raise IndexError(f"lax.index_in_dim: index {index} is out of range for an axis of {x.shape[axis]} elements")
    index %= x.shape[axis]
    part = _slice(index, index + 1) if keepdims else index
    return x[(_slice(None),) * axis + (part,)]


def _axis_of(name: str, x: Array, axis: int) -> int:
    if not -x.ndim <= axis < x.ndim:
        raise ValueError(f"lax.{name}: axis {axis} is out of range for an array of {x.ndim} axes")
    return axis % x.ndim


def _starts(name: str, start_indices: Any, x: Array) -> list:
    """A start for each axis: a number, or an array without axes whose element is not known."""
    if isinstance(start_indices, (Array, np.ndarray)) and start_indices.ndim == 1:
        start_indices = [start_indices[i] for i in range(start_indices.shape[0])]
    elif not isinstance(start_indices, (tuple, list)):
        raise TypeError(f"lax.{name} takes a start for each axis, not {start_indices!r}")
    if len(start_indices) != x.ndim:
        raise ValueError(f"lax.{name} takes a start for each axis: {x.ndim}, not {len(start_indices)}")
    starts = []
    for i, one in enumerate(start_indices):
        dtype = np.asarray(one).dtype if not isinstance(one, Array) else one.dtype
        if not _is_value(one) or dtype.kind not in "iu" or _shape(one):
            raise TypeError(f"lax.{name}: the start of axis {i} is an integer or an array of one without axes")
        starts.append(one if _is_unknown(one) else int(one))
    return starts


def _clamped(start: Any, extent: int, size: int) -> Any:
    """A start clamped so that `size` elements follow it; negative ones count from the end."""
    if isinstance(start, int):
        return min(max(start + extent if start < 0 else start, 0), extent - size)
    from stride import _elementwise

    start = start.astype(np.int64)
    return _elementwise.clip(_elementwise.where(start < 0, start + extent, start), 0, extent - size)


def dynamic_slice(operand: Any, start_indices: Any, slice_sizes: Sequence[int]) -> Array:
    """`slice_sizes` elements from starts that may be computed. A start from which there are fewer is moved.

    Parameters
        operand: an array.
        start_indices: for each axis an integer or an array of one without axes; or an array of all.
        slice_sizes: for each axis how many elements.
    Returns
        An array of shape `slice_sizes`.
    Raises
        TypeError for sizes above the array's and for starts that are no integers; ValueError for another number of
        starts.
    Example
        >>> stride.lax.dynamic_slice(st.arange(5), (st.array(4),), (2,)).tolist()
        [3, 4]
    """
    x = _array("dynamic_slice", operand)
    starts, sizes = _starts("dynamic_slice", start_indices, x), tuple(operator.index(one) for one in slice_sizes)
    if len(sizes) != x.ndim or any(not 0 <= size <= n for size, n in zip(sizes, x.shape)):
        raise TypeError(f"lax.dynamic_slice: slices of {sizes} are not within an array of shape {x.shape}")
    starts = [_clamped(*one) for one in zip(starts, x.shape, sizes)]
    known = [_slice(one, one + size) if isinstance(one, int) else _slice(None) for one, size in zip(starts, sizes)]
    result = x[tuple(known)]
    for axis, (start, size) in enumerate(zip(starts, sizes)):
        if not isinstance(start, int) and size != x.shape[axis]:
            result = _routines.gather(result, [start + _creation.arange(size)], axis)
    return result


def dynamic_update_slice(operand: Any, update: Any, start_indices: Any) -> Array:
    """A copy with `update` from starts that may be computed on. A start from which it has no room is moved.

    Parameters
        operand: an array.
        update: an array of the operand's type.
        start_indices: for each axis the first place.
    Returns
        An array of the operand's shape.
    Raises
        TypeError for another type, and for an update larger than the array; ValueError for another number of starts.
    Example
        >>> stride.lax.dynamic_update_slice(st.zeros(4), st.ones(2), (st.array(3),)).tolist()
        [0.0, 0.0, 1.0, 1.0]
    """
    x, update = (array_of(one) for one in _operands("dynamic_update_slice", (operand, update), is_elementwise=False))
    starts = _starts("dynamic_update_slice", start_indices, x)
    if update.ndim != x.ndim or any(size > n for size, n in zip(update.shape, x.shape)):
        raise TypeError(
            f"lax.dynamic_update_slice: an update of shape {update.shape} is not within an array of shape {x.shape}"
        )
    starts = [_clamped(*one) for one in zip(starts, x.shape, update.shape)]
    result = _casts.copy(x)
    if all(isinstance(one, int) for one in starts):
        result[tuple(_slice(one, one + size) for one, size in zip(starts, update.shape))] = update
        return result
    places = []
    for axis, (start, size) in enumerate(zip(starts, update.shape)):
        column = (1,) * axis + (size,) + (1,) * (x.ndim - axis - 1)
        places.append(_manipulation.reshape(start + _creation.arange(size), column))
    if update.size:
        _routines.scatter(result, places, update, 0)
    return result


def _along(axis: int, x: Array, start: Any) -> list:
    return [start if i == axis else 0 for i in range(x.ndim)]


def dynamic_slice_in_dim(operand: Any, start_index: Any, slice_size: int, axis: int = 0) -> Array:
    """As `dynamic_slice`, along one axis.

    Parameters
        operand: an array.
        start_index: an integer, or an array of one without axes.
        slice_size: how many elements.
        axis: the axis.
    Returns
        An array.
    Example
        >>> stride.lax.dynamic_slice_in_dim(st.arange(5), st.array(1), 2).tolist()
        [1, 2]
    """
    x = _array("dynamic_slice_in_dim", operand)
    axis = _axis_of("dynamic_slice_in_dim", x, axis)
    sizes = [slice_size if i == axis else n for i, n in enumerate(x.shape)]
    return dynamic_slice(x, _along(axis, x, start_index), sizes)


def dynamic_index_in_dim(operand: Any, index: Any, axis: int = 0, keepdims: bool = True) -> Array:
    """One element along an axis, whose place may be computed; the nearest one where it is out of range.

    Parameters
        operand: an array.
        index: an integer, or an array of one without axes.
        axis: the axis.
        keepdims: whether the axis stays, with one element.
    Returns
        An array.
    Example
        >>> stride.lax.dynamic_index_in_dim(st.arange(5), st.array(3), keepdims=False).tolist()
        3
    """
    result = dynamic_slice_in_dim(operand, index, 1, axis)
    return result if keepdims else _shapes.squeeze(result, (axis % result.ndim,))


def dynamic_update_slice_in_dim(operand: Any, update: Any, start_index: Any, axis: int) -> Array:
    """As `dynamic_update_slice`, along one axis.

    Parameters
        operand: an array.
        update: an array of the operand's type.
        start_index: an integer, or an array of one without axes.
        axis: the axis.
    Returns
        An array of the operand's shape.
    Example
        >>> stride.lax.dynamic_update_slice_in_dim(st.zeros(3), st.ones(1), st.array(1), 0).tolist()
        [0.0, 1.0, 0.0]
    """
    x = _array("dynamic_update_slice_in_dim", operand)
    return dynamic_update_slice(x, update, _along(_axis_of("dynamic_update_slice_in_dim", x, axis), x, start_index))


def dynamic_update_index_in_dim(operand: Any, update: Any, index: Any, axis: int) -> Array:
    """A copy with an update of one element along an axis.

    Parameters
        operand: an array.
        update: the element, with or without the axis.
        index: an integer, or an array of one without axes.
        axis: the axis.
    Returns
        An array of the operand's shape.
    Example
        >>> stride.lax.dynamic_update_index_in_dim(st.zeros(3), st.array(1.0), 1, 0).tolist()
        [0.0, 1.0, 0.0]
    """
    x = _array("dynamic_update_index_in_dim", operand)
    axis = _axis_of("dynamic_update_index_in_dim", x, axis)
    value = array_of(_operands("dynamic_update_index_in_dim", (x, update), is_elementwise=False)[1]).astype(x.dtype)
    if value.ndim != x.ndim:
        value = _manipulation.expand_dims(value, axis=axis)
    return dynamic_update_slice_in_dim(x, value, index, axis)
