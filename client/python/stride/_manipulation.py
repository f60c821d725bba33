"""Shapes, types and places: views where NumPy has views, else copies."""

import builtins
import functools
import itertools
import math
import operator
import sys
import warnings
from typing import Callable, List, Optional, Sequence, Tuple, Union

import numpy as np

from stride import _arguments, _dtypes, _errors, _graph, _inference
from stride._array import Array, array_of, host_array, node_of, wrap
from stride._graph import Assembly, FrozenStrides, Node, Number, Prepared, View, record
from stride._indexing import make_view
from stride._session import _device_name
from stride.v1 import operation_pb2 as pb

__all__ = [
    "astype",
    "broadcast_arrays",
    "broadcast_shapes",
    "broadcast_to",
    "can_cast",
    "concat",
    "concatenate",
    "diff",
    "expand_dims",
    "flip",
    "matrix_transpose",
    "moveaxis",
    "permute_dims",
    "ravel",
    "repeat",
    "reshape",
    "result_type",
    "roll",
    "squeeze",
    "stack",
    "swapaxes",
    "tile",
    "transpose",
    "unstack",
]


def _strides(node: Node) -> Tuple[int, ...]:
    return node.strides or _inference.contiguous_strides(node.shape)


# --- types ---

def can_cast(from_, to, casting: str = "safe") -> bool:
    """Whether one element type, or an array's, may be cast to another.

    Parameters
        from_: a type or an array.
        to: a type.
        casting: no, equiv, safe, same_kind or unsafe.
    Returns
        A bool.
    Raises
        TypeError for a Python number, whose type depends on its value.
    Example
        >>> st.can_cast(st.int32, st.float64)
        True
    """
    return np.can_cast(from_.dtype if isinstance(from_, Array) else from_, to, casting)


def result_type(*arrays_and_dtypes) -> np.dtype:
    """The type that arrays, numbers and types have together by NumPy 2's rules, in which Python's numbers are weak.

    Parameters
        arrays_and_dtypes: arrays, Python's numbers and types; at least one.
    Returns
        A numpy.dtype.
    Raises
        DataTypeMismatch for types that have none together.
    Example
        >>> st.result_type(st.array([1], st.int8), 3.0)
        dtype('float64')
    """
    types = [one.dtype if isinstance(one, (Array, np.ndarray)) else one for one in arrays_and_dtypes]
    if _dtypes.bfloat16 is not None and any(
        isinstance(one, (type, np.dtype)) and np.dtype(one) == _dtypes.bfloat16 for one in types
    ):
        numbers = {bool: _dtypes.bool, int: int, float: float, complex: complex}
        return _inference.promote(*(numbers.get(type(one)) or _dtypes.dtype_of(one) for one in types))
    return _dtypes.dtype_of(np.result_type(*types))


def astype(x: Array, dtype, /, *, copy: bool = True, device: Optional[str] = None) -> Array:
    """The elements in another type.

    Parameters
        x: an array.
        dtype: the type.
        copy: False gives `x` itself where it has the type.
        device: where the result is.
    Returns
        An array of `x`'s shape.
    Raises
        DataTypeMismatch for a type that the service does not have.
    Example
        >>> st.astype(st.array([1.7]), int).tolist()
        [1]
    """
    dtype, x = _dtypes.dtype_of(dtype), x if isinstance(x, Array) else array_of(x)
    node = x._node
    if node.dtype == dtype and not copy:
        return x
    warn_of_complex(node.dtype, dtype)
    if _graph.check_floats is not None:
        from stride import _float_errors

        _float_errors.of_cast(node, dtype)
    result = _copy(node, dtype)
    return result if device is None else result.to_device(device)


def warn_of_complex(given: np.dtype, dtype: np.dtype) -> None:
    """Warns where a cast drops imaginary parts, as NumPy does."""
    if given.kind == "c" and dtype.kind not in "cb":
        warnings.warn(
            "Casting complex values to real discards the imaginary part",
            np.exceptions.ComplexWarning,
            stacklevel=warning_level(),
        )


def warning_level() -> int:
    """The stacklevel of the first frame outside this package, counted from the function that warns."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("stride."):
        level, frame = level + 1, frame.f_back
    return level


def _copy(node: Node, dtype=None, device: str = "") -> Array:
    dtype = dtype or node.dtype
    data_type = _dtypes.NUMBERS[dtype]
    if not device:
        host = None
        if node.buffer is not None and node.buffer.is_local:
            host = functools.partial(_cast_on_host, dtype=dtype)
        return wrap(record(node.session, node.shape, dtype, _converting(data_type), (node,), host=host))

    def build(flush, result, operands):
        operation = pb.Operation(copy=pb.Copy(input=operands[0], data_type=data_type), device=device)
        operation.outputs.add(handle=result.handle)
        flush.add(operation, result.origin)

    return wrap(record(node.session, node.shape, dtype, build, (node,)))


def _cast_on_host(values: np.ndarray, dtype: np.dtype) -> Optional[np.ndarray]:
    """A copy in another type. None where NumPy's result depends on the processor: numbers out of the range of
    integers."""
    if values.dtype.kind == "c" and dtype.kind not in "cb":
        values = values.real
    if values.dtype.kind == "f" and dtype.kind in "iu":
        info = np.iinfo(dtype)
        if not ((values > info.min) & (values < info.max)).all():
            return None
    with np.errstate(over="ignore", invalid="ignore"):
        return values.astype(dtype, order="C")


@functools.lru_cache(maxsize=None)  # as many as there are types
def _converting(data_type: int) -> Prepared:
    return Prepared(pb.Operation(copy=pb.Copy(data_type=data_type)), "copy", ("input",))


def copy(x: Array) -> Array:
    result = _copy(x._node)
    if not x.ndim and x._node.strides is not None:
        result._node.strides = ()  # marks an array without axes, not a number
    return result


def memory_axes(order: Optional[str], rank: int, like: Optional[Array] = None) -> Optional[List[int]]:
    """The axes of a new array from the one whose elements lie furthest apart; None for C order. `like` is what A and K
    take the order from."""
    if order == "C" or order is None or rank < 2:
        return None
    order = order.upper()
    if order == "K":
        node = None if like is None else like._node
        if node is None or len(node.shape) != rank or node.strides is None or is_contiguous(node.shape, node.strides):
            return None
        axes = memory_order(node.strides)
        return None if axes == list(range(rank)) else axes
    if order == "F" or order == "A" and like is not None and lies_in_fortran_order(like._node):
        return list(range(rank))[::-1]
    return None


def inverse(axes: Sequence[int]) -> List[int]:
    """The permutation that undoes another."""
    return sorted(range(len(axes)), key=axes.__getitem__)


def lies_otherwise(x: Array, order: Optional[str]) -> bool:
    """Whether an array has to be copied for C or F."""
    if order is None or order.upper() not in ("C", "F") or x.ndim < 2:
        return False
    strides = x._node.strides or _inference.contiguous_strides(x.shape)
    if order.upper() == "F":
        return not is_contiguous(x.shape[::-1], strides[::-1])
    return not is_contiguous(x.shape, strides)


def copied(x: Array, order: Optional[str], dtype: Optional[np.dtype] = None) -> Array:
    """A copy, in another type where one is given, in the memory order that NumPy gives it."""
    axes = memory_axes(order, x.ndim, x)
    return _in_type(x, dtype) if axes is None else laid_out(x, axes, dtype)


def laid_out(x: Array, axes: List[int], dtype: Optional[np.dtype] = None) -> Array:
    """A copy whose elements lie in the order of `memory_axes`."""
    return permute_dims(_in_type(permute_dims(x, axes), dtype), inverse(axes))


def _in_type(x: Array, dtype: Optional[np.dtype]) -> Array:
    """A copy in C order."""
    return copy(x) if dtype is None or dtype == x.dtype else astype(x, dtype)


def to_device(x: Array, device: str) -> Array:
    result = _copy(x._node, device=_device_name(device))
    result._node.device = _device_name(device)
    return result


# --- views ---

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


def lies_in_fortran_order(node: Node) -> bool:
    """Whether the first axis is the fastest, and that is another order than C."""
    if node.strides is None or is_contiguous(node.shape, node.strides):
        return False
    return is_contiguous(node.shape[::-1], node.strides[::-1])


def is_contiguous(shape, strides) -> bool:
    """Whether elements lie in C order without gaps; axes of one element lie anyhow."""
    if 0 in shape:
        return True
    expected = 1
    for extent, stride in zip(reversed(shape), reversed(strides)):
        if extent != 1 and stride != expected:
            return False
        expected *= extent
    return True


def memory_order(strides: Sequence[int]) -> List[int]:
    """The axes from the one whose elements lie furthest apart, as NumPy's iterators sort them: an axis along which
    elements repeat (distance 0) stays where it is among the others."""
    fastest: List[int] = []
    for axis in reversed(range(len(strides))):
        place = len(fastest)
        for i in reversed(range(len(fastest))):
            if strides[axis] and strides[fastest[i]]:
                if builtins.abs(strides[fastest[i]]) <= builtins.abs(strides[axis]):
                    break
                place = i
        fastest.insert(place, axis)
    return fastest[::-1]


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


# --- copies ---

def concat(arrays, axis: Optional[int] = 0, out=None, *, dtype=None, casting: str = "same_kind") -> Array:
    """Arrays one after another along an axis.

    Parameters
        arrays: a sequence of arrays that agree on every other axis.
        axis: the axis; None flattens them first.
        out: array of the result's shape that takes it.
        dtype: the result's type, by default the one that they have together.
        casting: which casts to `dtype` or `out` are made.
    Returns
        An array.
    Raises
        ValueError for no arrays, and for ones without axes; ShapeMismatch; DataTypeMismatch for a refused cast.
    Example
        >>> st.concat([st.arange(2), st.arange(3)]).tolist()
        [0, 1, 0, 1, 2]
    """
    if isinstance(arrays, Array) and not arrays.ndim:
        raise TypeError("concat takes a sequence of arrays")
    arrays = given = list(sequence_of(arrays))
    if not arrays:
        raise ValueError("at least one array is needed")
    for array in arrays:
        if not isinstance(array, Array):
            from stride import _arguments

            arrays = list(_arguments.arrays(*arrays))
            break
    if axis is None:
        # Only this function accepts numbers among the arrays; Python's are weak.
        if dtype is None and out is None and any(type(one) in (int, float, complex) for one in given):
            dtype, casting = result_type(*(one if type(one) in (int, float, complex) else array
                                           for one, array in zip(given, arrays))), "unsafe"
        arrays, axis = [flat(array) for array in arrays], 0
    first = arrays[0]
    if not first.ndim:
        raise ValueError("arrays without axes cannot be put one after another; stack them")
    axis = _inference.normal_axis(axis, first.ndim)
    if casting != "same_kind":
        from stride import _arguments

        _arguments.check_casting(casting)
    for array in arrays:
        if array.shape == first.shape:
            continue
        if array.ndim != first.ndim or any(
            n != m for i, (n, m) in enumerate(zip(array.shape, first.shape)) if i != axis
        ):
            raise _errors.ShapeMismatch(
                "arrays must agree on every other axis: " + ", ".join(str(one.shape) for one in arrays)
            )
    if dtype is not None:
        if out is not None:
            raise TypeError("out= has a type of its own: give it or dtype=")
        dtype = _dtypes.dtype_of(dtype)
        arrays = [_cast(array, dtype, casting) for array in arrays]
    if out is not None:
        from stride import _arguments

        return _arguments.give(_join(arrays, axis), out, casting)
    return _join(arrays, axis)


concatenate = concat


def _cast(array: Array, dtype: np.dtype, casting: str) -> Array:
    if not np.can_cast(array.dtype, dtype, casting):
        raise _errors.DataTypeMismatch(
            f"elements of {array.dtype} are not cast to {dtype} with casting {casting!r}", reason="DATA_TYPE_MISMATCH"
        )
    return astype(array, dtype, copy=False)


def _join(arrays: List[Array], axis: int) -> Array:
    first = arrays[0]
    extents = [array.shape[axis] for array in arrays]
    shape = first.shape[:axis] + (builtins.sum(extents),) + first.shape[axis + 1:]
    ends = list(itertools.accumulate(extents))
    parts = [View((("slice", axis, end - extent, end, None),)) for extent, end in zip(extents, ends)]
    return _assembled(arrays, shape, parts, lambda *values: np.concatenate(values, axis))


def _assembled(arrays: List[Array], shape: Tuple[int, ...], parts: List[View], host: Callable) -> Array:
    """A new array of which each array fills a part; together they fill all. `host`: NumPy's function of their
    elements."""
    dtype = result_type(*arrays) if len({array.dtype for array in arrays}) > 1 else arrays[0].dtype
    filled = [(array._node, part) for array, part in zip(arrays, parts)]
    return assembled(arrays[0].session, shape, dtype, filled, host=host)


def assembled(
    session, shape: Tuple[int, ...], dtype: np.dtype, filled: Sequence[Tuple[Union[Node, Number], View]],
    is_zeroed: bool = False, host: Optional[Callable] = None,
) -> Array:
    """A new array made of nodes and numbers, each with the part that it fills: see Assembly. `host` as in
    _graph.record, of all of them."""
    filled = [one for one in filled if type(one[0]) is Number or one[0].size]
    op = Assembly(tuple([part for _, part in filled]), is_zeroed)
    return wrap(record(session, shape, dtype, op, tuple([one for one, _ in filled]), host=host))


def make_empty(flush, node: Node) -> None:
    """A builder's first command, where others write all elements."""
    flush.make_empty(node, node.handle)


def copy_into(flush, node: Node, operand, part: View) -> None:
    """Copies an operand into a part of the array that a builder makes."""
    operation = flush.begin(flush.view(node.handle, part, node.origin), node.origin)
    operation.outputs[0].existing = True
    operation.copy.input.CopyFrom(operand)


def sequence_of(arrays):
    """Arrays to join, which NumPy takes as a sequence and not from an iterator."""
    if not hasattr(arrays, "__getitem__"):
        raise TypeError("arrays to join are passed as a sequence, such as a list or a tuple")
    return arrays


def stack(arrays, axis: int = 0, out=None, *, dtype=None, casting: str = "same_kind") -> Array:
    """Arrays of one shape side by side along a new axis.

    Parameters
        arrays: a sequence of arrays that agree on every other axis.
        axis: the axis; None flattens them first.
        out: array of the result's shape that takes it.
        dtype: the result's type, by default the one that they have together.
        casting: which casts to `dtype` or `out` are made.
    Returns
        An array.
    Raises
        ValueError for no arrays, and for ones without axes; ShapeMismatch; DataTypeMismatch for a refused cast.
    Example
        >>> st.stack([st.arange(2), st.arange(2)], axis=1).tolist()
        [[0, 0], [1, 1]]
    """
    arrays = list(sequence_of(arrays))
    if not builtins.all(type(array) is Array for array in arrays):
        from stride import _arguments

        arrays = list(_arguments.arrays(*arrays))
    if not arrays:
        raise ValueError("at least one array is needed")
    if any(array.shape != arrays[0].shape for array in arrays):
        raise _errors.ShapeMismatch(
            "arrays to stack must have one shape: " + ", ".join(str(array.shape) for array in arrays)
        )
    axis = _inference.normal_axis(axis, arrays[0].ndim + 1)
    if dtype is None and out is None and casting == "same_kind":
        first = arrays[0]
        parts = [View((("index", axis, i),)) for i in range(len(arrays))]
        shape = first.shape[:axis] + (len(arrays),) + first.shape[axis:]
        return _assembled(arrays, shape, parts, lambda *values: np.stack(values, axis))
    return concat([expand_dims(array, axis=axis) for array in arrays], axis, out, dtype=dtype, casting=casting)


def flat(x: Array) -> Array:
    """All elements in C order, for reading: the array itself where it has one axis."""
    return x if x.ndim == 1 else reshape(x, (x.size,))


def tile(A, reps) -> Array:  # noqa: N803, NumPy's name
    """An array repeated as a whole.

    Parameters
        A: an array.
        reps: how often along each axis; an integer or a sequence of them.
    Returns
        An array of `A`'s type.
    Raises
        ValueError for a negative number.
    Example
        >>> st.tile(st.arange(2), 2).tolist()
        [0, 1, 0, 1]
    """
    x, repetitions = array_of(A), reps
    repetitions = (repetitions,) if hasattr(repetitions, "__index__") and np.ndim(repetitions) == 0 else repetitions
    repetitions = tuple(operator.index(n) for n in repetitions)
    if any(n < 0 for n in repetitions):
        raise ValueError(f"an array is not repeated less than 0 times: {repetitions}")
    rank = builtins.max(x.ndim, len(repetitions))
    shape = (1,) * (rank - x.ndim) + x.shape
    repetitions = (1,) * (rank - len(repetitions)) + repetitions
    between = reshape(x, tuple(n for extent in shape for n in (1, extent)))
    wide = broadcast_to(between, tuple(n for pair in zip(repetitions, shape) for n in pair))
    return reshape(_copy(wide._node), tuple(r * n for r, n in zip(repetitions, shape)))


def repeat(a, repeats, axis: Optional[int] = None) -> Array:
    """Each element, or each slice along an axis, several times.

    Parameters
        a: an array.
        repeats: how often: an integer, or one for each element; counts in an array of the service are read.
        axis: the axis; None flattens `a` first.
    Returns
        An array of `a`'s type.
    Raises
        ValueError for a negative number; ShapeMismatch where counts do not fit the axis.
    Example
        >>> st.repeat(st.arange(3), 2).tolist()
        [0, 0, 1, 1, 2, 2]
    """
    x = array_of(a)
    if axis is None or not x.ndim and operator.index(axis) in (0, -1):
        x, axis = flat(x), 0
    axis = _inference.normal_axis(axis, x.ndim)
    extent = x.shape[axis]
    counts = host_array(repeats)
    if counts.dtype.kind not in "biu" and counts.size:
        raise _errors.DataTypeMismatch(
            f"repeat counts with integers, not with {counts.dtype}", reason="DATA_TYPE_MISMATCH"
        )
    if counts.ndim > 1 or counts.ndim and counts.shape[0] not in (1, extent):
        raise _errors.ShapeMismatch(
            f"repeat's counts of shape {counts.shape} do not fit an axis of {extent} elements", reason="SHAPE_MISMATCH"
        )
    counts = np.broadcast_to(counts.astype(np.int64), (extent,)) if counts.ndim else counts
    if counts.ndim and extent and counts.min() != counts.max():
        return _repeat_each(x, counts.tolist(), axis)
    repeats = int(counts.flat[0]) if counts.size else 1
    if repeats < 0:
        raise ValueError("counts cannot be negative")
    node, before, after = x._node, x.shape[:axis + 1], x.shape[axis + 1:]
    strides = _strides(node)
    steps = ("reshape", before + (1,) + after), ("broadcast", before + (repeats,) + after)
    wide = make_view(node, steps, steps[1][1], strides[:axis + 1] + (0,) + strides[axis + 1:])
    return reshape(_copy(wide), before[:-1] + (extent * repeats,) + after)


def _repeat_each(x: Array, counts: List[int], axis: int) -> Array:
    if builtins.min(counts) < 0:
        raise ValueError("counts cannot be negative")
    before = (slice(None),) * axis
    parts = [broadcast_to(x[before + (slice(i, i + 1),)], x.shape[:axis] + (count,) + x.shape[axis + 1:])
             for i, count in enumerate(counts) if count]
    return concat(parts, axis=axis) if parts else copy(x[before + (slice(0, 0),)])


def roll(a, shift, axis=None) -> Array:
    """The elements moved along axes; those that leave at the end come in at the beginning.

    Parameters
        a: an array.
        shift: by how many places; an integer or one for each axis.
        axis: the axes; None moves all elements in C order.
    Returns
        An array of `a`'s shape and type.
    Raises
        AxisError for an axis that `a` lacks; ValueError for shifts and axes of different numbers.
    Example
        >>> st.roll(st.arange(4), 1).tolist()
        [3, 0, 1, 2]
    """
    x = array_of(a)
    if axis is None:
        if x.ndim != 1:
            return reshape(roll(reshape(x, (x.size,)), shift, axis=0), x.shape)
        axis = 0
    axes = tuple(axis) if isinstance(axis, (tuple, list)) else (axis,)
    shifts = tuple(map(operator.index, shift if isinstance(shift, (tuple, list)) or np.ndim(shift) else (shift,)))
    shifts = shifts * len(axes) if len(shifts) == 1 else shifts
    axes = axes * len(shifts) if len(axes) == 1 else axes
    if len(shifts) != len(axes):
        raise ValueError("as many shifts as axes are needed")
    result = x
    for one, amount in zip(axes, shifts):
        one = _inference.normal_axis(one, x.ndim)
        extent = x.shape[one]
        amount = amount % extent if extent else 0
        if amount and x.size:
            result = _rolled(result._node, one, amount)
    return copy(x) if result is x else result


def _rolled(node: Node, axis: int, amount: int) -> Array:
    """Moves by 0 < `amount` < the axis's extent: two copies into one result."""
    rest = node.shape[axis] - amount

    def build(flush, result, operands):
        flush.make_empty(result, result.handle)
        for begin, end, to in ((rest, rest + amount, 0), (0, rest, amount)):
            source = flush.view(operands[0].handle, View((("slice", axis, begin, end, None),)), result.origin)
            target = flush.view(result.handle, View((("slice", axis, to, to + end - begin, None),)), result.origin)
            flush.copy_into(source, target, result.origin)

    return wrap(record(node.session, node.shape, node.dtype, build, (node,)))


def diff(a, n: int = 1, axis: int = -1, prepend=None, append=None) -> Array:
    """Differences of neighbours along an axis, `n` times over.

    Parameters
        a: an array.
        n: how often.
        axis: the axis.
        prepend, append: numbers or arrays that stand before and after the elements.
    Returns
        An array with n elements less along the axis; of bools, whether neighbours differ.
    Raises
        ValueError for a negative n and an array without axes; AxisError for an axis that `a` lacks.
    Example
        >>> st.diff(st.array([1, 4, 9])).tolist()
        [3, 5]
    """
    x, n = array_of(a), operator.index(n)
    if n == 0:
        return x
    if n < 0:
        raise ValueError("n must not be negative")
    if not x.ndim:
        raise ValueError("an array without axes has no differences")
    axis = _inference.normal_axis(axis, x.ndim)
    beside = []
    for part in (prepend, append):
        if part is None or part is np._NoValue:
            beside.append([])
            continue
        part = wrap(node_of(part, x.session))
        if not part.ndim:
            part = broadcast_to(part, x.shape[:axis] + (1,) + x.shape[axis + 1:])
        beside.append([part])
    if beside != [[], []]:
        x = concat([*beside[0], x, *beside[1]], axis=axis)
    before = (slice(None),) * axis
    for _ in range(n):
        later, earlier = x[before + (slice(1, None),)], x[before + (slice(None, -1),)]
        x = (later != earlier) if x.dtype.kind == "b" else later - earlier
    return x
