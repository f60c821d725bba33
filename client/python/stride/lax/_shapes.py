"""JAX's functions that make arrays and move elements: shapes, joins and padding."""

from typing import Any, Optional, Sequence

import numpy as np

from stride import _assembly, _casts, _creation, _manipulation
from stride._array import Array, array_of
from stride.lax._kinds import _kind_text
from stride.lax._operators import _array, _operands

__all__ = [
    "broadcast",
    "broadcast_in_dim",
    "broadcast_shapes",
    "broadcast_to_rank",
    "broadcasted_iota",
    "collapse",
    "concatenate",
    "expand_dims",
    "full",
    "full_like",
    "iota",
    "pad",
    "reshape",
    "rev",
    "squeeze",
    "tile",
    "transpose",
]


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
    first, last, _ = slice(start_dimension, stop_dimension).indices(x.ndim)
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
    result[tuple(slice(max(0, low), max(0, low) + n, between + 1) for n, (low, _, between) in zip(inner, config))] = x
    kept = tuple(slice(max(0, -low), n - max(0, -high)) for n, (low, high, _) in zip(shape, config))
    if any(n < max(0, -low) + max(0, -high) for n, (low, high, _) in zip(shape, config)):
        raise ValueError(f"lax.pad: {config} takes away more than an array of shape {x.shape} has")
    return _casts.copy(result[kept]) if kept != tuple(slice(0, n) for n in shape) else result
