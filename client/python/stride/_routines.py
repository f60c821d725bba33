"""Functions that move elements by what other elements say: indices, order, running results.

The contract has grown here: where the stubs of this package know an operation not yet, its functions say so."""

import math
from collections import namedtuple
from typing import List, Optional, Tuple

import numpy as np

from stride import _dtypes, _errors, _inference, _manipulation, _reductions
from stride._array import Array, node_of, wrap
from stride._graph import Node, record, record_several
from stride.v1 import operation_pb2 as pb

__all__ = ["argsort", "cumulative_prod", "cumulative_sum", "nonzero", "searchsorted", "sort", "take", "take_along_axis", "unique_all",
           "unique_counts", "unique_inverse", "unique_values"]

_KNOWN = pb.Operation.DESCRIPTOR.fields_by_name


def need(operation: str, function: str) -> None:
    if operation not in _KNOWN:
        raise _errors.Unimplemented(f"stride.{function} is not there yet", reason="NOT_IMPLEMENTED", metadata={"feature": function})


def _array(x) -> Array:
    return x if isinstance(x, Array) else wrap(node_of(x))


def _record(kind: str, message, shape, dtype, nodes: tuple, fill) -> Array:
    """A node for `message`, into which `fill(message, operands)` puts the inputs."""

    def build(flush, node, operands):
        fill(message, operands)
        flush.operation(node.handle, node.origin, **{kind: message})

    return wrap(record(nodes[0].session, tuple(shape), dtype, build, nodes))


# --- order ---

def _sort(x, axis: int, descending: bool, indices: bool, name: str) -> Array:
    need("sort", name)
    node = node_of(x)
    axis = _inference.normal_axis(axis, len(node.shape))
    message = pb.Sort(axis=axis, descending=descending, indices=indices)
    return _record("sort", message, node.shape, _dtypes.int64 if indices else node.dtype, (node,),
                   lambda sort, operands: sort.input.CopyFrom(operands[0]))


def sort(x, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Array:
    """Always stable; NaN comes last."""
    return _sort(x, axis, descending, False, "sort")


def argsort(x, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Array:
    return _sort(x, axis, descending, True, "argsort")


def searchsorted(x1, x2, /, *, side: str = "left", sorter=None) -> Array:
    need("search", "searchsorted")
    if side not in ("left", "right"):
        raise ValueError(f"side is left or right, not {side}")
    x1 = _array(x1)
    if sorter is not None:
        x1 = take(x1, sorter)
    nodes = (x1._node, node_of(x2, x1.session))

    def fill(search, operands):
        search.sorted.CopyFrom(operands[0])
        search.values.CopyFrom(operands[1])

    return _record("search", pb.Search(right=side == "right"), nodes[1].shape, _dtypes.int64, nodes, fill)


# --- running results ---

def _accumulate(function: str, x, axis: Optional[int], dtype, include_initial: bool, name: str) -> Array:
    need("accumulation", name)
    array = _array(x)
    if axis is None:
        if array.ndim > 1:
            raise ValueError(f"{name} of several axes needs to be told which")
        axis = 0
    if not array.ndim:
        array = _manipulation.reshape(array, (1,))
    axis = _inference.normal_axis(axis, array.ndim)
    if dtype is None:
        dtype = {"b": _dtypes.int64, "i": _dtypes.int64, "u": _dtypes.uint64}.get(array.dtype.kind, array.dtype)
    dtype = _dtypes.dtype_of(dtype)
    if not np.can_cast(array.dtype, dtype, "same_kind"):
        array = array.astype(dtype)
    message = pb.Accumulation(function=function, axis=axis, include_initial=include_initial, data_type=_dtypes.NUMBERS[dtype])
    shape = list(array.shape)
    shape[axis] += include_initial
    return _record("accumulation", message, shape, dtype, (array._node,),
                   lambda accumulation, operands: accumulation.input.CopyFrom(operands[0]))


def cumulative_sum(x, /, *, axis: Optional[int] = None, dtype=None, include_initial: bool = False) -> Array:
    return _accumulate("add", x, axis, dtype, include_initial, "cumulative_sum")


def cumulative_prod(x, /, *, axis: Optional[int] = None, dtype=None, include_initial: bool = False) -> Array:
    return _accumulate("multiply", x, axis, dtype, include_initial, "cumulative_prod")


# --- by indices ---

def gather(x: Array, indices: List[Array], axis: int, along_axis: bool = False) -> Array:
    """`x[..., i, j]` with the indices from `axis` on. One that is out of range is told when the result is read."""
    need("gather", "take")
    nodes = (x._node, *(index._node for index in indices))
    if along_axis:
        others = [n for i, n in enumerate(x.shape) if i != axis]
        index = list(indices[0].shape)
        extent = index.pop(axis)
        shape = list(_inference.broadcast(tuple(others), tuple(index)))
        shape.insert(axis, extent)
    else:
        shape = (*x.shape[:axis], *_inference.broadcast(*(index.shape for index in indices)), *x.shape[axis + len(indices):])

    def fill(message, operands):
        message.input.CopyFrom(operands[0])
        message.indices.extend(operands[1:])

    return _record("gather", pb.Gather(axis=axis, along_axis=along_axis), shape, x.dtype, nodes, fill)


def _indices(array) -> Array:
    array = _array(array)
    if array.dtype.kind not in "iu":
        raise IndexError(f"indices are integers, not {array.dtype}")
    return array


def take(x, indices, /, *, axis: Optional[int] = None) -> Array:
    need("gather", "take")
    x = _array(x)
    if axis is None:
        if x.ndim != 1:
            raise ValueError("take from several axes needs to be told which")
        axis = 0
    return gather(x, [_indices(indices)], _inference.normal_axis(axis, x.ndim))


def take_along_axis(x, indices, /, *, axis: int = -1) -> Array:
    need("gather", "take_along_axis")
    x, indices = _array(x), _indices(indices)
    if x.ndim != indices.ndim:
        raise ValueError("x and indices must have as many axes")
    return gather(x, [indices], _inference.normal_axis(axis, x.ndim), along_axis=True)


def compress(x: Array, mask: Array, axis: int) -> Array:
    """`x[..., mask]` with the mask from `axis` on. Counts the mask's true elements first: one round trip."""
    need("compress", "x[mask]")
    if mask.shape != x.shape[axis:axis + mask.ndim]:
        raise IndexError(f"a mask of shape {mask.shape} does not fit axes {x.shape[axis:axis + mask.ndim]}")
    count = int(_reductions.count_nonzero(mask))
    shape = (*x.shape[:axis], count, *x.shape[axis + mask.ndim:])

    def fill(message, operands):
        message.input.CopyFrom(operands[0])
        message.mask.CopyFrom(operands[1])

    return _record("compress", pb.Compress(axis=axis, count=count), shape, x.dtype, (x._node, mask._node), fill)


def nonzero(x, /) -> Tuple[Array, ...]:
    """Counts first: one round trip."""
    need("nonzero", "nonzero")
    x = _array(x)
    if not x.ndim:
        raise ValueError("nonzero takes no scalars")
    count = int(_reductions.count_nonzero(x))

    def build(flush, operands, handles, origin):
        operation = pb.Operation(nonzero=pb.Nonzero(input=operands[0], count=count))
        for handle in handles:
            operation.outputs.add(handle=handle)
        flush.add(operation, origin)

    return tuple(map(wrap, record_several(x.session, [((count,), _dtypes.int64)] * x.ndim, build, (x._node,))))


def scatter(target: Array, indices: List[Array], values: Array, axis: int) -> None:
    """`target[..., i, j] = values`, in place; among equal indices the last counts."""
    need("scatter", "assignment by indices")
    node, session = target._node, target.session
    session.settle()

    def add(flush):
        operation = pb.Operation(scatter=pb.Scatter(values=flush.operand(values._node), axis=axis))
        operation.scatter.indices.extend(flush.operand(index._node) for index in indices)
        operation.outputs.add(handle=flush.materialise(node), existing=True)
        flush.add(operation, node.origin)

    session.flush((), add)
    node.written()


# --- sets ---

UniqueAll = namedtuple("UniqueAll", "values indices inverse_indices counts")
UniqueCounts = namedtuple("UniqueCounts", "values counts")
UniqueInverse = namedtuple("UniqueInverse", "values inverse_indices")


def _unique(x, name: str, values_only: bool = False):
    for operation in ("sort", "compress", "gather"):
        need(operation, name)
    from stride import _creation

    x = _array(x)
    flat = _manipulation.reshape(x, (x.size,))
    order = None if values_only else argsort(flat)
    ordered = sort(flat) if values_only else take(flat, order)
    if not x.size:
        empty = _creation.zeros((0,), dtype=_dtypes.int64)
        return UniqueAll(flat, empty, _manipulation.reshape(empty, x.shape), empty)
    # NaN differs from itself, as the standard wants.
    first = _manipulation.concat([_creation.ones((1,), dtype=_dtypes.bool), ordered[1:] != ordered[:-1]])
    values = compress(ordered, first, 0)
    if values_only:
        return values
    begins = nonzero(first)[0]
    counts = _manipulation.concat([begins[1:], _creation.full((1,), x.size)]) - begins
    inverse = _creation.zeros((x.size,), dtype=_dtypes.int64)
    scatter(inverse, [order], cumulative_sum(first) - 1, 0)
    return UniqueAll(values, take(order, begins), _manipulation.reshape(inverse, x.shape), counts)


def unique_all(x, /) -> UniqueAll:
    return _unique(x, "unique_all")


def unique_counts(x, /) -> UniqueCounts:
    all_ = _unique(x, "unique_counts")
    return UniqueCounts(all_.values, all_.counts)


def unique_inverse(x, /) -> UniqueInverse:
    all_ = _unique(x, "unique_inverse")
    return UniqueInverse(all_.values, all_.inverse_indices)


def unique_values(x, /) -> Array:
    values = _unique(x, "unique_values", values_only=True)
    return values.values if isinstance(values, UniqueAll) else values
