"""Shapes, types and places: views where NumPy has views, else copies."""

import builtins
import math
import operator
from typing import List, Optional, Tuple

import numpy as np

from stride import _dtypes, _errors, _inference
from stride._array import Array, array_of, host_array, node_of, wrap
from stride._graph import FrozenStrides, Node, record, spec_of
from stride._indexing import make_view
from stride._session import _device_name
from stride.v1 import operation_pb2 as pb

__all__ = ["astype", "broadcast_arrays", "broadcast_shapes", "broadcast_to", "can_cast", "concat", "diff", "expand_dims", "flip", "matrix_transpose", "moveaxis",
           "permute_dims", "repeat", "reshape", "result_type", "roll", "squeeze", "stack", "tile", "unstack"]


def _strides(node: Node) -> Tuple[int, ...]:
    return node.strides or _inference.contiguous_strides(node.shape)


# --- types ---

def can_cast(from_, to, /) -> bool:
    return np.can_cast(from_.dtype if isinstance(from_, Array) else from_, to)


def result_type(*arrays_and_dtypes) -> np.dtype:
    """NumPy 2's promotion; Python's numbers are weak."""
    types = [one.dtype if isinstance(one, (Array, np.ndarray)) else one for one in arrays_and_dtypes]
    if _dtypes.bfloat16 is not None and any(isinstance(one, (type, np.dtype)) and np.dtype(one) == _dtypes.bfloat16 for one in types):
        numbers = {bool: _dtypes.bool, int: int, float: float, complex: complex}
        return _inference.promote(*(numbers.get(type(one)) or _dtypes.dtype_of(one) for one in types))
    return _dtypes.dtype_of(np.result_type(*types))


def astype(x: Array, dtype, /, *, copy: bool = True, device: Optional[str] = None) -> Array:
    dtype = _dtypes.dtype_of(dtype)
    node = x._node
    if node.dtype == dtype and not copy:
        return x
    result = _copy(node, dtype)
    return result if device is None else result.to_device(device)


def _copy(node: Node, dtype=None, device: str = "") -> Array:
    dtype = dtype or node.dtype
    data_type = _dtypes.NUMBERS[dtype]

    def build(flush, result, operands):
        operation = pb.Operation(copy=pb.Copy(input=operands[0], data_type=data_type), device=device)
        operation.outputs.add(handle=result.handle)
        flush.add(operation, result.origin)

    return wrap(record(node.session, node.shape, dtype, build, (node,)))


def copy(x: Array) -> Array:
    return _copy(x._node)


def to_device(x: Array, device: str) -> Array:
    result = _copy(x._node, device=_device_name(device))
    result._node.device = _device_name(device)
    return result


# --- views ---

def reshape(x, /, shape, *, copy: Optional[bool] = None) -> Array:  # noqa: A002
    node = node_of(x)
    if hasattr(shape, "__index__") and np.ndim(shape) == 0:
        shape = (shape,)
    shape = tuple(operator.index(n) for n in shape)
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
    steps = [pb.View.Step(reshape=pb.View.Reshape(shape=shape))]
    return wrap(make_view(node, steps, shape, strides, lambda host: host.reshape(shape)))


def _complete(node: Node, shape):
    """With -1 replaced by what is left."""
    if any(n < -1 for n in shape):
        raise ValueError(f"negative dimensions are not allowed: {shape}")
    if shape.count(-1) > 1:
        raise ValueError("only one extent may be -1")
    known = math.prod(n for n in shape if n != -1)
    if -1 in shape:
        if known == 0 or node.size % known:
            raise _errors.ShapeMismatch(f"no extent in place of -1 fits: {node.shape} to {shape}", reason="SHAPE_MISMATCH")
        shape = tuple(node.size // known if n == -1 else n for n in shape)
    elif known != node.size:
        raise _errors.ShapeMismatch(f"the number of elements changes: {node.shape} to {shape}", reason="SHAPE_MISMATCH")
    return shape


def permute_dims(x, /, axes) -> Array:
    node = node_of(x)
    rank = len(node.shape)
    axes = _inference.normal_axes(tuple(axes), rank)
    if len(axes) != rank:
        raise ValueError(f"every axis must be named once: {axes} for an array of {rank} axes")
    if axes == tuple(range(rank)):
        return wrap(make_view(node, [], node.shape, _strides(node), lambda host: host))
    strides = _strides(node)
    steps = [pb.View.Step(transpose=pb.View.Transpose(axes=axes))]
    return wrap(make_view(node, steps, [node.shape[i] for i in axes], [strides[i] for i in axes], lambda host: host.transpose(axes)))


def matrix_transpose(x, /) -> Array:
    x = array_of(x)
    if x.ndim < 2:
        raise ValueError("a matrix or a stack of them is needed")
    return permute_dims(x, (*range(x.ndim - 2), x.ndim - 1, x.ndim - 2))


def moveaxis(x, source, destination, /) -> Array:
    node = node_of(x)
    rank = len(node.shape)
    source, destination = _inference.normal_axes(source, rank), _inference.normal_axes(destination, rank)
    if len(source) != len(destination):
        raise ValueError("as many destinations as sources are needed")
    order = [axis for axis in range(rank) if axis not in source]
    for to, axis in sorted(zip(destination, source)):
        order.insert(to, axis)
    return permute_dims(x, order)


def broadcast_to(x, /, shape) -> Array:
    node = node_of(x)
    shape = (shape,) if hasattr(shape, "__index__") and np.ndim(shape) == 0 else shape
    shape = tuple(operator.index(n) for n in shape)
    if any(n < 0 for n in shape):
        raise ValueError(f"negative dimensions are not allowed: {shape}")
    if len(shape) < len(node.shape) or _inference.broadcast(node.shape, shape) != shape:
        raise _errors.ShapeMismatch(f"an array of shape {node.shape} does not broadcast to {shape}", reason="SHAPE_MISMATCH")
    extra = len(shape) - len(node.shape)
    strides = [0] * extra + [0 if n != m else s for n, m, s in zip(node.shape, shape[extra:], _strides(node))]
    steps = [pb.View.Step(broadcast=pb.View.Broadcast(shape=shape))]
    view = make_view(node, steps, shape, strides, lambda host: np.broadcast_to(host, shape))
    view.strides = FrozenStrides(strides)
    return wrap(view)


def broadcast_shapes(*shapes) -> Tuple[int, ...]:
    return _inference.broadcast(*map(tuple, shapes)) if shapes else ()


def broadcast_arrays(*arrays) -> Tuple[Array, ...]:
    arrays = tuple(map(array_of, arrays))
    shape = _inference.broadcast(*(array.shape for array in arrays)) if arrays else ()
    return tuple(broadcast_to(array, shape) for array in arrays)


def expand_dims(x, /, axis=0) -> Array:
    node = node_of(x)
    axes = axis if isinstance(axis, (tuple, list)) else (axis,)
    rank = len(node.shape) + len(axes)
    normal = _inference.normal_axes(axes, rank)
    extents = iter(node.shape)
    return reshape(x, tuple(1 if i in normal else next(extents) for i in range(rank)))


def squeeze(x, /, axis=None) -> Array:
    node = node_of(x)
    axes = (
        tuple(i for i, n in enumerate(node.shape) if n == 1)
        if axis is None
        else _inference.reduced_axes(axis, len(node.shape))
    )
    if any(node.shape[i] != 1 for i in axes):
        raise ValueError(f"only axes of one element can be removed: {axis} of {node.shape}")
    return reshape(x, tuple(n for i, n in enumerate(node.shape) if i not in axes))


def flip(x, /, *, axis=None) -> Array:
    x = array_of(x)
    axes = _inference.normal_axes(axis, x.ndim)
    return x[tuple(slice(None, None, -1) if i in axes else slice(None) for i in range(x.ndim))]


def unstack(x, /, *, axis: int = 0) -> Tuple[Array, ...]:
    x = array_of(x)
    if not x.ndim:
        raise ValueError("an array without axes cannot be unstacked")
    axis = _inference.normal_axis(axis, x.ndim)
    return tuple(x[(slice(None),) * axis + (i,)] for i in range(x.shape[axis]))


# --- copies ---

def concat(arrays, /, *, axis: Optional[int] = 0) -> Array:
    """The arrays one after another, in their common type; with axis None all flattened first."""
    arrays = list(arrays)
    if not arrays:
        raise ValueError("at least one array is needed")
    arrays = [array if isinstance(array, Array) else wrap(node_of(array)) for array in arrays]
    if axis is None:
        arrays, axis = [reshape(array, (array.size,)) for array in arrays], 0
    first = arrays[0]
    if not first.ndim:
        raise ValueError("arrays without axes cannot be put one after another; stack them")
    axis = _inference.normal_axis(axis, first.ndim)
    for array in arrays:
        if array.ndim != first.ndim or any(n != m for i, (n, m) in enumerate(zip(array.shape, first.shape)) if i != axis):
            raise _errors.ShapeMismatch("arrays must agree on every other axis: " + ", ".join(str(one.shape) for one in arrays))
    extents = [array.shape[axis] for array in arrays]
    shape = first.shape[:axis] + (builtins.sum(extents),) + first.shape[axis + 1:]

    def build(flush, node, operands):
        flush.operation(node.handle, node.origin, creation=pb.Creation(fill=pb.Creation.Fill(spec=spec_of(node))))
        begin = 0
        for operand, extent in zip(operands, extents):
            if extent and node.size:
                _copy_into(flush, node, operand, pb.View.Slice(axis=axis, start=begin, stop=begin + extent))
            begin += extent

    return wrap(record(first.session, shape, result_type(*arrays), build, tuple(array._node for array in arrays)))


def _copy_into(flush, node: Node, operand, part: pb.View.Slice) -> None:
    view = flush.scratch()
    flush.operation(view, node.origin, view=pb.View(input=pb.Operand(handle=node.handle), steps=[pb.View.Step(slice=part)]))
    operation = pb.Operation(copy=pb.Copy(input=operand))
    operation.outputs.add(handle=view, existing=True)
    flush.add(operation, node.origin)


def stack(arrays, /, *, axis: int = 0) -> Array:
    arrays = list(map(array_of, arrays))
    if not arrays:
        raise ValueError("at least one array is needed")
    if any(array.shape != arrays[0].shape for array in arrays):
        raise _errors.ShapeMismatch("arrays to stack must have one shape: " + ", ".join(str(array.shape) for array in arrays))
    axis = _inference.normal_axis(axis, arrays[0].ndim + 1)
    return concat([expand_dims(array, axis=axis) for array in arrays], axis=axis)


def tile(x, repetitions, /) -> Array:
    x = array_of(x)
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


def repeat(x, repeats, /, *, axis: Optional[int] = None) -> Array:
    """Each element, or each slice along `axis`, several times. Counts in an array are read."""
    x = array_of(x)
    if axis is None or not x.ndim and operator.index(axis) in (0, -1):
        x, axis = reshape(x, (x.size,)), 0
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
    wide = broadcast_to(expand_dims(x, axis=axis + 1), x.shape[:axis + 1] + (repeats,) + x.shape[axis + 1:])
    return reshape(_copy(wide._node), x.shape[:axis] + (extent * repeats,) + x.shape[axis + 1:])


def _repeat_each(x: Array, counts: List[int], axis: int) -> Array:
    if builtins.min(counts) < 0:
        raise ValueError("counts cannot be negative")
    before = (slice(None),) * axis
    parts = [broadcast_to(x[before + (slice(i, i + 1),)], x.shape[:axis] + (count,) + x.shape[axis + 1:])
             for i, count in enumerate(counts) if count]
    return concat(parts, axis=axis) if parts else copy(x[before + (slice(0, 0),)])


def roll(x, /, shift, *, axis=None) -> Array:
    x = array_of(x)
    if axis is None:
        return reshape(roll(reshape(x, (x.size,)), shift, axis=0), x.shape)
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
        if amount:
            before = (slice(None),) * one
            result = concat([result[before + (slice(extent - amount, None),)], result[before + (slice(None, extent - amount),)]], axis=one)
    return copy(x) if result is x else result


def diff(x, /, *, axis: int = -1, n: int = 1, prepend=None, append=None) -> Array:
    x, n = array_of(x), operator.index(n)
    if n < 0:
        raise ValueError("n must not be negative")
    if not x.ndim:
        raise ValueError("an array without axes has no differences")
    axis = _inference.normal_axis(axis, x.ndim)
    if prepend is not None or append is not None:
        x = concat([part for part in (prepend, x, append) if part is not None], axis=axis)
    before = (slice(None),) * axis
    for _ in range(n):
        later, earlier = x[before + (slice(1, None),)], x[before + (slice(None, -1),)]
        x = (later != earlier) if x.dtype.kind == "b" else later - earlier
    return x
