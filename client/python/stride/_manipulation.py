"""Shapes and axes: views where NumPy has views, else copies."""

import builtins
import math
import operator
from typing import List, Optional, Tuple

import numpy as np

from stride import _arguments, _errors, _inference
from stride._array import Array, array_of, node_of, wrap
from stride._casts import (
    _copy, _in_type, copy, inverse, is_contiguous, lies_in_fortran_order, memory_axes, memory_order,
)
from stride._graph import Node
from stride._indexing import make_view
from stride._views import FrozenStrides

__all__ = [
    "broadcast_arrays",
    "broadcast_shapes",
    "broadcast_to",
    "expand_dims",
    "flip",
    "matrix_transpose",
    "moveaxis",
    "permute_dims",
    "ravel",
    "reshape",
    "squeeze",
    "swapaxes",
    "transpose",
    "unstack",
]


def _strides(node: Node) -> Tuple[int, ...]:
    return node.strides or _inference.contiguous_strides(node.shape)


def copied(x: Array, order: Optional[str], dtype: Optional[np.dtype] = None) -> Array:
    """A copy, in another type where one is given, in the memory order that NumPy gives it."""
    axes = memory_axes(order, x.ndim, x)
    return _in_type(x, dtype) if axes is None else laid_out(x, axes, dtype)


def laid_out(x: Array, axes: List[int], dtype: Optional[np.dtype] = None) -> Array:
    """A copy whose elements lie in the order of `memory_axes`."""
    return permute_dims(_in_type(permute_dims(x, axes), dtype), inverse(axes))


def reshape(a, shape, order: Optional[str] = "C", *, copy: Optional[bool] = None) -> Array:  # noqa: A002
    """The elements in another shape: a view where there is one, else a copy.

    Parameters
        a: an array.
        shape: an integer or a sequence of them, of which one may be -1: what is left.
        order: C, F (elements are read and placed first axis fastest) or A (F where `a` lies so).
        copy: True for a copy in any case, False for an error where one is needed.
    Returns
        An array of `a`'s type.
    Raises
        ShapeMismatch where the number of elements changes; ValueError where `copy` is False and one is needed.
    Example
        >>> st.reshape(st.arange(4), (2, 2), "F").tolist()
        [[0, 2], [1, 3]]
    """
    node = node_of(a)
    shape = _extents(shape)
    if order != "C" and _in_fortran_order(node, order):
        turned = reshape(transpose(array_of(a)), _complete(node, shape)[::-1], copy=copy)
        return transpose(turned)
    shape = _complete(node, shape)
    strides = _inference.contiguous_strides(shape)
    if node.strides is not None and node.size:
        strides = _inference.reshaped_strides(node.shape, node.strides, shape)
        if strides is None:
            if copy is False:
                raise ValueError(f"no view of this array has the shape {shape}")
            return reshape(_copy(node), shape)
    if copy:
        return reshape(_copy(node), shape)
    return wrap(make_view(node, (("reshape", shape),), shape, strides, lambda host: host.reshape(shape)), a)


def _in_fortran_order(node: Node, order: Optional[str]) -> bool:
    from stride import _arguments

    order = _arguments.check_order(order, ("C", "F", "A"))
    return order == "F" or order == "A" and lies_in_fortran_order(node)


def ravel(a, order: Optional[str] = "C") -> Array:
    """All elements along one axis, without gaps: a view where they lie so, else a copy.

    Parameters
        a: an array.
        order: C, F (first axis fastest), A (F where `a` lies so), or K (as they lie).
    Returns
        An array of one axis.
    Raises
        ValueError for another order.
    Example
        >>> st.ravel(st.array([[1, 2], [3, 4]]), "F").tolist()
        [1, 3, 2, 4]
    """
    array = array_of(a)
    order = "C" if order is None else order
    if order != "C" and _arguments.check_order(order) == "K":
        strides = _strides(array._node)
        axes = memory_order(strides)
        result = reshape(permute_dims(array, axes), (array.size,))
    else:
        result = reshape(array, (array.size,), order)
    laid = result._node.strides
    # `reshape` gives a view of elements with gaps as well, and writes into that would be seen.
    return result if laid is None or is_contiguous(result.shape, laid) else copy(result)


def transpose(a, axes=None) -> Array:
    """A view with the axes in another order.

    Parameters
        a: an array.
        axes: the order; None reverses it.
    Returns
        An array.
    Raises
        ValueError where an axis is missing or named twice; AxisError for one that `a` lacks.
    Example
        >>> st.transpose(st.zeros((2, 3, 4))).shape
        (4, 3, 2)
    """
    array = array_of(a)
    return permute_dims(array, range(array.ndim - 1, -1, -1) if axes is None else axes)


def swapaxes(a, axis1: int, axis2: int) -> Array:
    """A view in which two axes have changed places.

    Parameters
        a: an array.
        axis1, axis2: the axes.
    Returns
        An array.
    Raises
        AxisError for an axis that `a` lacks.
    Example
        >>> st.swapaxes(st.zeros((2, 3, 4)), 0, 2).shape
        (4, 3, 2)
    """
    array = array_of(a)
    axis1, axis2 = (_inference.normal_axis(one, array.ndim) for one in (axis1, axis2))
    order = list(range(array.ndim))
    order[axis1], order[axis2] = order[axis2], order[axis1]
    return permute_dims(array, order)


def _extents(shape) -> Tuple[int, ...]:
    """A shape that is an integer or a sequence of them; bools are none, as in NumPy."""
    if type(shape) is int:
        return (shape,)
    if type(shape) is not tuple:
        shape = (shape,) if hasattr(shape, "__index__") and np.ndim(shape) == 0 else tuple(shape)
    if builtins.bool in map(type, shape):
        raise TypeError(f"a shape is of integers, not bools: {shape}")
    return tuple(map(operator.index, shape))


def _complete(node: Node, shape):
    """The shape with -1 replaced by the remaining extent."""
    known = math.prod(shape)
    if known < 0 or shape and builtins.min(shape) < 0:
        if builtins.min(shape) < -1:
            raise ValueError(f"negative dimensions are not allowed: {shape}")
        if shape.count(-1) > 1:
            raise ValueError("only one extent may be -1")
        known = math.prod(n for n in shape if n != -1)
        if known == 0 or node.size % known:
            raise _errors.ShapeMismatch(
                f"no extent in place of -1 fits: {node.shape} to {shape}", reason="SHAPE_MISMATCH"
            )
        shape = tuple(node.size // known if n == -1 else n for n in shape)
    elif known != node.size:
        raise _errors.ShapeMismatch(f"the number of elements changes: {node.shape} to {shape}", reason="SHAPE_MISMATCH")
    return shape


def permute_dims(a, axes=None) -> Array:
    """A view with the axes in another order, by the name that the array API gives `transpose`.

    Parameters
        a: an array.
        axes: the order; None reverses it.
    Returns
        An array.
    Raises
        ValueError where an axis is missing or named twice; AxisError for one that `a` lacks.
    Example
        >>> st.permute_dims(st.zeros((2, 3)), (1, 0)).shape
        (3, 2)
    """
    node = node_of(a)
    rank = len(node.shape)
    axes = tuple(range(rank - 1, -1, -1)) if axes is None else _inference.normal_axes(tuple(axes), rank)
    if len(axes) != rank:
        raise ValueError(f"every axis must be named once: {axes} for an array of {rank} axes")
    if axes == tuple(range(rank)):
        return wrap(make_view(node, (), node.shape, _strides(node), lambda host: host), a)
    strides = _strides(node)
    view = make_view(
        node, (("transpose", axes),), [node.shape[i] for i in axes], [strides[i] for i in axes],
        lambda host: host.transpose(axes)
    )
    return wrap(view, a)


def matrix_transpose(x, /) -> Array:
    """A view of matrices in the last two axes with rows and columns exchanged.

    Parameters
        x: an array (..., m, n).
    Returns
        A view (..., n, m).
    Raises
        ValueError for fewer than two axes.
    Example
        >>> st.matrix_transpose(st.zeros((5, 2, 3))).shape
        (5, 3, 2)
    """
    x = array_of(x)
    if x.ndim < 2:
        raise ValueError("a matrix or a stack of them is needed")
    return permute_dims(x, (*range(x.ndim - 2), x.ndim - 1, x.ndim - 2))


def moveaxis(a, source, destination) -> Array:
    """A view with some axes in other places; the rest stay in their order.

    Parameters
        a: an array.
        source, destination: an axis or a sequence of them, from where and to where.
    Returns
        An array.
    Raises
        AxisError for an axis that `a` lacks; ValueError for sequences of different lengths.
    Example
        >>> st.moveaxis(st.zeros((2, 3, 4)), 0, -1).shape
        (3, 4, 2)
    """
    node = node_of(a)
    rank = len(node.shape)
    source, destination = _inference.normal_axes(source, rank), _inference.normal_axes(destination, rank)
    if len(source) != len(destination):
        raise ValueError("as many destinations as sources are needed")
    order = [axis for axis in range(rank) if axis not in source]
    for to, axis in sorted(zip(destination, source)):
        order.insert(to, axis)
    return permute_dims(a, order)


def broadcast_to(array, shape, subok: bool = False) -> Array:
    """A view for reading, in which axes of one element and missing ones are repeated.

    Parameters
        array: an array.
        shape: an integer or a sequence of them.
        subok: must be False.
    Returns
        An array of the shape.
    Raises
        ShapeMismatch where it does not broadcast; Unimplemented for `subok`.
    Example
        >>> st.broadcast_to(st.array([1, 2]), (2, 2)).tolist()
        [[1, 2], [1, 2]]
    """
    if subok:
        from stride import _arguments

        _arguments.refuse_subok(subok)
    node = node_of(array)
    shape = _extents(shape)
    if shape and builtins.min(shape) < 0:
        raise ValueError(f"negative dimensions are not allowed: {shape}")
    extra = len(shape) - len(node.shape)
    if extra < 0 or any(n != m and n != 1 for n, m in zip(node.shape, shape[extra:])):
        raise _errors.ShapeMismatch(
            f"an array of shape {node.shape} does not broadcast to {shape}", reason="SHAPE_MISMATCH"
        )
    strides = [0] * extra + [0 if n != m else s for n, m, s in zip(node.shape, shape[extra:], _strides(node))]
    view = make_view(node, (("broadcast", shape),), shape, strides, lambda host: np.broadcast_to(host, shape))
    view.strides = FrozenStrides(strides)
    return wrap(view, array)


def broadcast_shapes(*shapes) -> Tuple[int, ...]:
    """The shape that arrays of these shapes have together; an integer stands for a shape of one axis.

    Parameters
        shapes: tuples of extents, or integers.
    Returns
        A tuple of int.
    Raises
        ShapeMismatch where shapes do not fit.
    Example
        >>> st.broadcast_shapes((2, 1), 3)
        (2, 3)
    """
    shapes = tuple((one,) if hasattr(one, "__index__") else tuple(one) for one in shapes)
    return _inference.broadcast(*shapes) if shapes else ()


def broadcast_arrays(*arrays, subok: bool = False) -> Tuple[Array, ...]:
    """Views for reading of arrays in the shape that they have together.

    Parameters
        arrays: arrays.
        subok: must be False.
    Returns
        A tuple of arrays.
    Raises
        ShapeMismatch where they do not broadcast; Unimplemented for `subok`.
    Example
        >>> [one.shape for one in st.broadcast_arrays(st.zeros((2, 1)), st.zeros(3))]
        [(2, 3), (2, 3)]
    """
    if subok:
        from stride import _arguments

        _arguments.refuse_subok(subok)
    arrays = tuple(map(array_of, arrays))
    shape = _inference.broadcast(*(array.shape for array in arrays)) if arrays else ()
    return tuple(broadcast_to(array, shape) for array in arrays)


def expand_dims(a, axis=0) -> Array:
    """A view with new axes of one element.

    Parameters
        a: an array.
        axis: where they are in the result; an integer or a tuple of them.
    Returns
        An array.
    Raises
        AxisError for an axis that the result lacks.
    Example
        >>> st.expand_dims(st.zeros(3), 1).shape
        (3, 1)
    """
    x = a
    node = node_of(x)
    axes = axis if isinstance(axis, (tuple, list)) else (axis,)
    rank = len(node.shape) + len(axes)
    normal = _inference.normal_axes(axes, rank)
    extents = iter(node.shape)
    return reshape(x, tuple(1 if i in normal else next(extents) for i in range(rank)))


def squeeze(a, axis=None) -> Array:
    """A view without axes of one element.

    Parameters
        a: an array.
        axis: which ones, None for all; an integer or a tuple of them.
    Returns
        An array.
    Raises
        ValueError for an axis of more elements; AxisError for one that `a` lacks.
    Example
        >>> st.squeeze(st.zeros((1, 3, 1))).shape
        (3,)
    """
    x = a
    node = node_of(x)
    axes = (
        tuple(i for i, n in enumerate(node.shape) if n == 1)
        if axis is None
        else _inference.reduced_axes(axis, len(node.shape))
    )
    if any(node.shape[i] != 1 for i in axes):
        raise ValueError(f"only axes of one element can be removed: {axis} of {node.shape}")
    return reshape(x, tuple(n for i, n in enumerate(node.shape) if i not in axes))


def flip(m, axis=None) -> Array:
    """A view with the elements along axes in the opposite order.

    Parameters
        m: an array.
        axis: which axes, None for all; an integer or a tuple of them.
    Returns
        An array.
    Raises
        AxisError for an axis that `m` lacks.
    Example
        >>> st.flip(st.arange(3)).tolist()
        [2, 1, 0]
    """
    x = array_of(m)
    axes = _inference.normal_axes(axis, x.ndim)
    return x[tuple(slice(None, None, -1) if i in axes else slice(None) for i in range(x.ndim))]


def unstack(x, /, *, axis: int = 0) -> Tuple[Array, ...]:
    """Views of the slices along an axis.

    Parameters
        x: an array, or what becomes one.
        axis: the axis, or for several a tuple; None for all.
    Returns
        A tuple of views, as many as the axis is long.
    Raises
        AxisError for an axis that `x` does not have.
    Example
        >>> [one.tolist() for one in st.unstack(st.array([[1, 2], [3, 4]]))]
        [[1, 2], [3, 4]]
    """
    x = array_of(x)
    if not x.ndim:
        raise ValueError("an array without axes cannot be unstacked")
    axis = _inference.normal_axis(axis, x.ndim)
    return tuple(x[(slice(None),) * axis + (i,)] for i in range(x.shape[axis]))
