"""Elements by slices and integers: views, and assignment to them."""

import operator
from typing import List, Tuple

import numpy as np

from stride import _dtypes, _errors, _inference
from stride._array import Array, node_of, wrap
from stride._graph import Node, Number, record
from stride.v1 import operation_pb2 as pb

_INT64 = np.iinfo(np.int64)


def _bound(value):
    if value is None:
        return None
    return max(_INT64.min, min(_INT64.max, operator.index(value)))


def _expand(key, rank: int) -> list:
    """One entry for each axis, and None for new ones."""
    keys = list(key) if isinstance(key, tuple) else [key]
    for one in keys:
        if isinstance(one, (bool, np.bool_)) or (isinstance(one, (Array, np.ndarray, list)) and not _is_integer(one)):
            raise _errors.Unimplemented("Indexing by arrays is not there yet: boolean and integer arrays in x[...]", reason="NOT_IMPLEMENTED",
                                        metadata={"feature": "array_indexing"})
    used = sum(1 for one in keys if one is not None and one is not Ellipsis)
    if sum(1 for one in keys if one is Ellipsis) > 1:
        raise IndexError("an index can have one ellipsis only")
    if used > rank:
        raise IndexError(f"too many indices: {used} for an array of {rank} axes")
    missing = [slice(None)] * (rank - used)
    for i, one in enumerate(keys):
        if one is Ellipsis:
            return keys[:i] + missing + keys[i + 1:]
    return keys + missing


def _is_integer(one) -> bool:
    return not isinstance(one, list) and one.ndim == 0 and one.dtype.kind in "iu"


class _View:
    """The steps from a node to a view of it, with the shape and strides that it will have."""

    def __init__(self, node: Node):
        self.shape = list(node.shape)
        self.strides = list(node.strides or _inference.contiguous_strides(node.shape))
        self.steps: List[pb.View.Step] = []

    def slice(self, axis: int, key: slice) -> None:
        start, stop, step = _bound(key.start), _bound(key.stop), _bound(key.step)
        if step == 0:
            raise ValueError("slice step cannot be zero")
        count = len(range(*slice(start, stop, step).indices(self.shape[axis])))
        if (start, stop, step) == (None, None, None):
            return
        message = pb.View.Slice(axis=axis)
        for name, value in (("start", start), ("stop", stop), ("step", step)):
            if value is not None:
                setattr(message, name, value)
        self.steps.append(pb.View.Step(slice=message))
        self.shape[axis] = count
        self.strides[axis] *= step if step is not None and count > 1 else 1

    def index(self, axis: int, key: int) -> None:
        extent = self.shape[axis]
        if not -extent <= key < extent:
            raise IndexError(f"index {key} is out of bounds for axis {axis} with {extent} elements")
        self.steps.append(pb.View.Step(slice=pb.View.Slice(axis=axis, start=key, index=True)))
        del self.shape[axis], self.strides[axis]

    def new_axes(self, axes: List[int]) -> None:
        for axis in axes:
            self.shape.insert(axis, 1)
            self.strides.insert(axis, 1)
        if axes:
            self.steps.append(pb.View.Step(reshape=pb.View.Reshape(shape=self.shape)))


def make_view(node: Node, steps: list, shape, strides, host=None) -> Node:
    """A deferred view. `host(elements)` gives the same view of the elements when they are known here."""

    def build(flush, view, operands):
        flush.operation(view.handle, view.origin, view=pb.View(input=operands[0], steps=steps))

    view = record(node.session, tuple(shape), node.dtype, build, (node,))
    view.strides = tuple(strides)
    view.share_buffer(node)
    cached = node.cached()
    if cached is not None and host is not None:
        view.keep(host(cached))
    return view


def _view_of(node: Node, key) -> Node:
    keys = _expand(key, len(node.shape))
    view = _View(node)
    axis = 0
    new = []
    for one in keys:
        if one is None:
            new.append(axis)
            axis += 1
        elif isinstance(one, slice):
            view.slice(axis - len(new), one)
            axis += 1
        else:
            try:
                index = operator.index(one)
            except TypeError:
                raise IndexError(f"an index is an integer, a slice, an ellipsis or None, not {type(one).__name__}") from None
            view.index(axis - len(new), index)
    view.new_axes(new)
    plain = tuple(one if one is None or isinstance(one, slice) else operator.index(one) for one in keys)
    return make_view(node, view.steps, view.shape, view.strides, lambda host: host[plain + (Ellipsis,)])


def get(array: Array, key) -> Array:
    return wrap(_view_of(array._node, key))


def set(array: Array, key, value) -> None:  # noqa: A001
    target = wrap(_view_of(array._node, key))
    if not isinstance(value, Array):
        if isinstance(value, (bool, int, float, complex)) and not isinstance(value, np.generic):
            _check_kind(value, array.dtype)
            value = np.array(value, array.dtype)
        else:
            value = np.asarray(value)
        value = wrap(node_of(value, array._node.session))
    if _inference.broadcast(value.shape, target.shape) != target.shape:
        # NumPy lets leading axes of one element go.
        trimmed = value.shape[max(0, value.ndim - target.ndim):]
        if _inference.broadcast(trimmed, target.shape) != target.shape or value.size != int(np.prod(trimmed)):
            raise _errors.ShapeMismatch(f"shape {value.shape} cannot be assigned to shape {target.shape}")
        value = value.reshape(trimmed)
    write(target, value)


def _check_kind(value, dtype) -> None:
    if isinstance(value, complex) and dtype.kind != "c":
        raise TypeError(f"a complex number cannot be assigned to an array of {dtype}")


def write(target: Array, value: Array) -> None:
    """The elements of `target`, which may be a view, become those of `value`, which broadcasts."""
    node, source = target._node, value.astype(target.dtype, copy=False)._node
    session = node.session
    # Whatever was recorded before reads the old elements.
    session.settle()

    def add(flush):
        operation = pb.Operation(copy=pb.Copy(input=flush.operand(source)))
        operation.outputs.add(handle=flush.materialise(node), existing=True)
        flush.add(operation, node.origin)

    session.flush((), add)
    node.written()
