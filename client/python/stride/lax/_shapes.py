"""JAX's functions that make, move and take elements: shapes, slices, padding."""

import operator
from typing import Any, List, Optional, Sequence

import numpy as np

from stride import _assembly, _casts, _creation, _manipulation, _routines
from stride._array import Array, array_of
from stride.lax._control import _is_unknown, _is_value, _kind_text, _shape
from stride.lax._operators import _array, _operands

__all__ = [
    "broadcast",
    "broadcast_in_dim",
    "broadcast_shapes",
    "broadcast_to_rank",
    "broadcasted_iota",
    "collapse",
    "concatenate",
    "dynamic_index_in_dim",
    "dynamic_slice",
    "dynamic_slice_in_dim",
    "dynamic_update_index_in_dim",
    "dynamic_update_slice",
    "dynamic_update_slice_in_dim",
    "expand_dims",
    "full",
    "full_like",
    "index_in_dim",
    "iota",
    "pad",
    "reshape",
    "rev",
    "slice",
    "slice_in_dim",
    "split",
    "squeeze",
    "tile",
    "transpose",
]

_slice = slice


def full(shape: Any, fill_value: Any, dtype: Any = None, *, sharding: Any = None) -> Array:
    """An array of one value.

    Parameters
        shape: the shape.
        fill_value: a number.
        dtype: the element type.
        sharding: accepted.
    Returns
        An array.
    Example
        >>> stride.lax.full((2,), 7).tolist()
        [7, 7]
    """
    return _creation.full(shape, fill_value, dtype)


def full_like(x: Any, fill_value: Any, dtype: Any = None, shape: Any = None, sharding: Any = None) -> Array:
    """An array of one value, by default of another's shape and type.

    Parameters
        x: an array.
        fill_value: a number.
        dtype: the element type; None for x's.
        shape: the shape; None for x's.
        sharding: accepted.
    Returns
        An array.
    Example
        >>> stride.lax.full_like(st.zeros(2), 7).tolist()
        [7.0, 7.0]
    """
    return _creation.full_like(x, fill_value, dtype, shape=shape)


def iota(dtype: Any, size: int) -> Array:
    """The numbers from 0 on.

    Parameters
        dtype: the element type.
        size: how many.
    Returns
        An array.
    Example
        >>> stride.lax.iota(st.int32, 3).tolist()
        [0, 1, 2]
    """
    return _creation.arange(size).astype(dtype)


def broadcasted_iota(dtype: Any, shape: Sequence[int], dimension: int) -> Array:
    """The numbers from 0 on along one axis of a shape.

    Parameters
        dtype: the element type.
        shape: the shape.
        dimension: the axis along which they count.
    Returns
        An array.
    Example
        >>> stride.lax.broadcasted_iota(st.int32, (2, 2), 1).tolist()
        [[0, 1], [0, 1]]
    """
    shape = tuple(shape)
    if not 0 <= dimension < len(shape):
        raise ValueError(f"lax.broadcasted_iota: the axis is from 0 to {len(shape) - 1}, not {dimension}")
    column = tuple(n if i == dimension else 1 for i, n in enumerate(shape))
    return _manipulation.broadcast_to(iota(dtype, shape[dimension]).reshape(column), shape)


def broadcast_shapes(*shapes: Sequence[int]) -> tuple:
    """The shape that shapes of one length have together.

    Parameters
        shapes: shapes of one length.
    Returns
        A tuple of integers.
    Example
        >>> stride.lax.broadcast_shapes((2, 1), (1, 3))
        (2, 3)
    """
    return np.broadcast_shapes(*[tuple(one) for one in shapes])


def broadcast(operand: Any, sizes: Sequence[int]) -> Array:
    """Adds leading axes of these sizes.

    Parameters
        operand: an array.
        sizes: the extents of the new axes.
    Returns
        An array.
    Example
        >>> stride.lax.broadcast(st.ones(3), (2,)).shape
        (2, 3)
    """
    x = _array("broadcast", operand)
    return _manipulation.broadcast_to(x, (*sizes, *x.shape))


def broadcast_in_dim(operand: Any, shape: Sequence[int], broadcast_dimensions: Sequence[int], **ignored: Any) -> Array:
    """An array of a shape, in which the operand's axes are `broadcast_dimensions`.

    Parameters
        operand: an array.
        shape: the shape.
        broadcast_dimensions: for each axis of the operand its place in the result.
        ignored: JAX's other options, which change nothing.
    Returns
        An array.
    Example
        >>> stride.lax.broadcast_in_dim(st.ones(2), (2, 3), (0,)).shape
        (2, 3)
    """
    x, shape, places = _array("broadcast_in_dim", operand), tuple(shape), tuple(broadcast_dimensions)
    fits = (
        len(places) == x.ndim
        and list(places) == sorted(set(places))
        and all(0 <= place < len(shape) and n in (1, shape[place]) for place, n in zip(places, x.shape))
    )
    if not fits:
        raise TypeError(f"lax.broadcast_in_dim: an array of shape {x.shape} does not have the axes {places} of {shape}")
    column = [1] * len(shape)
    for place, n in zip(places, x.shape):
        column[place] = n
    return _manipulation.broadcast_to(_manipulation.reshape(x, tuple(column)), shape)


def broadcast_to_rank(x: Any, rank: int) -> Array:
    """Adds leading axes of one element up to `rank` axes.

    Parameters
        x: an array.
        rank: how many axes.
    Returns
        An array.
    Example
        >>> stride.lax.broadcast_to_rank(st.ones(3), 2).shape
        (1, 3)
    """
    x = _array("broadcast_to_rank", x)
    if rank < x.ndim:
        raise ValueError(f"lax.broadcast_to_rank: an array of {x.ndim} axes has no {rank}")
    return _manipulation.reshape(x, (1,) * (rank - x.ndim) + x.shape)


def reshape(
    operand: Any, new_sizes: Sequence[int], dimensions: Optional[Sequence[int]] = None, **ignored: Any
) -> Array:
    """The elements in another shape, with the axes in the order of `dimensions` first.

    Parameters
        operand: an array.
        new_sizes: the shape.
        dimensions: the order in which the axes are read; None for theirs.
        ignored: JAX's other options, which change nothing.
    Returns
        An array.
    Example
        >>> stride.lax.reshape(st.arange(4), (2, 2)).tolist()
        [[0, 1], [2, 3]]
    """
    x = _array("reshape", operand)
    x = x if dimensions is None else _manipulation.permute_dims(x, tuple(dimensions))
    if int(np.prod(new_sizes)) != x.size:
        raise TypeError(f"lax.reshape: {x.size} elements have no shape {tuple(new_sizes)}")
    return _manipulation.reshape(x, tuple(new_sizes))


def collapse(operand: Any, start_dimension: int, stop_dimension: Optional[int] = None) -> Array:
    """The axes from one to before another as one.

    Parameters
        operand: an array.
        start_dimension: the first of the axes.
        stop_dimension: the axis to stop before; None for the end.
    Returns
        An array.
    Example
        >>> stride.lax.collapse(st.ones((2, 3, 4)), 1).shape
        (2, 12)
    """
    x = _array("collapse", operand)
    first, last, _ = _slice(start_dimension, stop_dimension).indices(x.ndim)
    return _manipulation.reshape(x, (*x.shape[:first], int(np.prod(x.shape[first:last])), *x.shape[last:]))


def expand_dims(array: Any, dimensions: Sequence[int]) -> Array:
    """With axes of one element at these places of the result.

    Parameters
        array: an array.
        dimensions: the axes.
    Returns
        An array.
    Example
        >>> stride.lax.expand_dims(st.ones(3), (0,)).shape
        (1, 3)
    """
    x = _array("expand_dims", array)
    rank = x.ndim + len(tuple(dimensions))
    places = {one % rank for one in dimensions}
    extents = iter(x.shape)
    return _manipulation.reshape(x, tuple(1 if i in places else next(extents) for i in range(rank)))


def squeeze(array: Any, dimensions: Sequence[int]) -> Array:
    """Without these axes, which have one element each.

    Parameters
        array: an array.
        dimensions: the axes.
    Returns
        An array.
    Example
        >>> stride.lax.squeeze(st.ones((1, 3)), (0,)).shape
        (3,)
    """
    return _manipulation.squeeze(_array("squeeze", array), axis=tuple(dimensions))


def transpose(operand: Any, permutation: Sequence[int]) -> Array:
    """The axes in another order.

    Parameters
        operand: an array.
        permutation: for each axis of the result the operand's.
    Returns
        An array.
    Example
        >>> stride.lax.transpose(st.ones((2, 3)), (1, 0)).shape
        (3, 2)
    """
    x = _array("transpose", operand)
    if sorted(permutation) != list(range(x.ndim)):
        raise TypeError(f"lax.transpose: the order of {x.ndim} axes is not {tuple(permutation)}")
    return _manipulation.permute_dims(x, tuple(permutation))


def rev(operand: Any, dimensions: Sequence[int]) -> Array:
    """In reverse along these axes.

    Parameters
        operand: an array.
        dimensions: the axes.
    Returns
        An array.
    Example
        >>> stride.lax.rev(st.arange(3), (0,)).tolist()
        [2, 1, 0]
    """
    return _manipulation.flip(_array("rev", operand), axis=tuple(dimensions))


def tile(operand: Any, reps: Sequence[int]) -> Array:
    """Repeated as a whole along each axis.

    Parameters
        operand: an array.
        reps: for each axis how often.
    Returns
        An array.
    Example
        >>> stride.lax.tile(st.arange(2), (2,)).tolist()
        [0, 1, 0, 1]
    """
    return _assembly.tile(_array("tile", operand), tuple(reps))


def concatenate(operands: Sequence[Any], dimension: int) -> Array:
    """Arrays of one type, one after another along an axis.

    Parameters
        operands: arrays of one type.
        dimension: the axis.
    Returns
        An array.
    Example
        >>> stride.lax.concatenate([st.arange(2), st.arange(3)], 0).tolist()
        [0, 1, 0, 1, 2]
    """
    arrays = [array_of(one) for one in _operands("concatenate", list(operands), is_elementwise=False)]
    if len({one.ndim for one in arrays}) > 1 or not 0 <= dimension < arrays[0].ndim:
        raise TypeError(f"lax.concatenate: arrays of shapes {[one.shape for one in arrays]} have no axis {dimension}")
    return _assembly.concat(arrays, axis=dimension)


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


def pad(operand: Any, padding_value: Any, padding_config: Sequence[Any]) -> Array:
    """With a value around the elements and between them.

    Parameters
        operand: an array.
        padding_value: a number or an array without axes, of its type.
        padding_config: for each axis how many before, after and between neighbours; negative ones take elements away.
    Returns
        An array.
    Example
        >>> stride.lax.pad(st.array([1, 2]), 0, [(1, 0, 1)]).tolist()
        [0, 1, 0, 2]
    """
    x, value = (array_of(one) for one in _operands("pad", (operand, padding_value), is_elementwise=False))
    config = [tuple(one) for one in padding_config]
    if len(config) != x.ndim or value.shape or any(len(one) != 3 or one[2] < 0 for one in config):
        raise ValueError(
            f"lax.pad takes (before, after, between) for each of {x.ndim} axes and a number, not {config} and "
            f"{_kind_text(padding_value)}"
        )
    inner = [n + max(0, n - 1) * between for n, (_, _, between) in zip(x.shape, config)]
    shape = tuple(max(0, low) + n + max(0, high) for n, (low, high, _) in zip(inner, config))
    result = _casts.copy(_manipulation.broadcast_to(value, shape))
    result[tuple(_slice(max(0, low), max(0, low) + n, between + 1) for n, (low, _, between) in zip(inner, config))] = x
    kept = tuple(_slice(max(0, -low), n - max(0, -high)) for n, (low, high, _) in zip(shape, config))
    if any(n < max(0, -low) + max(0, -high) for n, (low, high, _) in zip(shape, config)):
        raise ValueError(f"lax.pad: {config} takes away more than an array of shape {x.shape} has")
    return _casts.copy(result[kept]) if kept != tuple(_slice(0, n) for n in shape) else result


# --- slices ---


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
    return result if keepdims else squeeze(result, (axis % result.ndim,))


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
