"""Elements by slices and integers: views, and assignment to them."""

import math
import operator
from typing import List

import numpy as np

from stride import _errors, _inference
from stride._array import Array, node_of, wrap
from stride._graph import Node, defer
from stride.v1 import operation_pb2 as pb

_INT64 = np.iinfo(np.int64)


def _bound(value):
    if value is None:
        return None
    return max(_INT64.min, min(_INT64.max, operator.index(value)))


def _as_keys(key) -> list:
    """The parts of an index, with lists and arrays of the host as Arrays or, of no axes, as Python's numbers."""
    keys = list(key) if isinstance(key, tuple) else [key]
    for i, one in enumerate(keys):
        if isinstance(one, list):
            one = np.asarray(one, dtype=None if one else np.int64)
        if isinstance(one, (np.ndarray, Array)) and one.ndim == 0 and one.dtype.kind in "iu":
            keys[i] = int(one)
        elif isinstance(one, (bool, np.bool_)):
            keys[i] = wrap(node_of(np.asarray(one)))
        elif isinstance(one, np.ndarray):
            keys[i] = wrap(node_of(one))
        elif isinstance(one, Array):
            keys[i] = one
        if isinstance(keys[i], Array) and keys[i].dtype.kind not in "biu":
            raise IndexError(f"arrays of integers or bools are indices, not of {keys[i].dtype}")
    return keys


def _num_axes(one) -> int:
    """How many axes a part of an index takes."""
    if one is None or one is Ellipsis:
        return 0
    return one.ndim if isinstance(one, Array) and one.dtype.kind == "b" else 1


def _expand(keys: list, rank: int) -> list:
    """One entry for each axis (a mask: for its axes), and None for new ones."""
    used = sum(map(_num_axes, keys))
    ellipses = [i for i, one in enumerate(keys) if one is Ellipsis]
    if len(ellipses) > 1:
        raise IndexError("an index can have one ellipsis only")
    if used > rank:
        raise IndexError(f"too many indices: {used} for an array of {rank} axes")
    missing = [slice(None)] * (rank - used)
    if ellipses:
        return keys[:ellipses[0]] + missing + keys[ellipses[0] + 1:]
    return keys + missing


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

    view = defer(node.session, tuple(shape), node.dtype, build, (node,))
    view.strides = tuple(strides)
    view.share_buffer(node)
    view.device = node.device
    cached = node.cached()
    if cached is not None and host is not None:
        view.keep(host(cached))
    return view


def _view_of(node: Node, keys: list) -> Node:
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
                raise IndexError(f"an index is an integer, a slice, an ellipsis, None or an array, not {type(one).__name__}") from None
            view.index(axis - len(new), index)
    view.new_axes(new)
    plain = tuple(one if one is None or isinstance(one, slice) else operator.index(one) for one in keys)
    return make_view(node, view.steps, view.shape, view.strides, lambda host: host[plain + (Ellipsis,)])


class _ByArrays:
    """An index with arrays: a view, in which the arrays' axes stand together, and the arrays for them."""

    def __init__(self, array: Array, keys: list):
        from stride import _manipulation

        masks = [one for one in keys if isinstance(one, Array) and one.dtype.kind == "b"]
        others = [one for one in keys if isinstance(one, Array) and one.dtype.kind != "b" or isinstance(one, (int, np.integer))]
        self.mask = masks[0] if len(masks) == 1 and not others else None
        plain, places, arrays, groups = [], [], [], 0
        previous_is_array = False
        for one in keys:
            is_array = isinstance(one, Array) or isinstance(one, (int, np.integer))
            if is_array:
                groups += not previous_is_array
                parts = self._parts(one, array, sum(map(_num_axes, (k for k in plain if k is not None))))
                for part in parts:
                    places.append(len(plain))
                    arrays.append(part)
                    plain.append(slice(None))
                if not parts:  # a mask without axes
                    places.append(len(plain))
            else:
                plain.append(one)
            previous_is_array = is_array
        self.view = wrap(_view_of(array._node, plain))
        self.arrays = arrays
        self.axis = places[0] if places else 0
        if groups > 1:
            # Apart from each other: NumPy puts their axes first.
            rest = [i for i in range(self.view.ndim) if i not in places]
            self.view = _manipulation.permute_dims(self.view, (*places, *rest))
            self.axis = 0

    def _parts(self, one, array: Array, axis: int) -> list:
        """Index arrays, one for each axis that `one` takes; of a lone mask as many places."""
        from stride import _routines

        if not isinstance(one, Array):
            extent = array.shape[axis]
            if not -extent <= one < extent:
                raise IndexError(f"index {one} is out of bounds for axis {axis} with {extent} elements")
            return [wrap(node_of(np.asarray(one), array.session))]
        if one.dtype.kind != "b":
            return [one]
        return [None] * one.ndim if one is self.mask else list(_routines.nonzero(one))


def _fitting_masks(array: Array, keys: list) -> list:
    """With masks of the axes' extents; the standard lets an extent of the mask be 0, and then it takes nothing."""
    keys, axis = list(keys), 0
    for i, one in enumerate(keys):
        taken = _num_axes(one)
        if isinstance(one, Array) and one.dtype.kind == "b":
            extents = array.shape[axis:axis + taken]
            if any(n not in (0, m) for n, m in zip(one.shape, extents)):
                raise IndexError(f"a mask of shape {one.shape} does not fit axes {extents}")
            if one.shape != extents:
                keys[i] = wrap(node_of(np.zeros(extents, bool), array.session))
        axis += taken
    return keys


def _scalar_mask(array: Array, keys: list):
    """`x[True]` and `x[mask]` with a mask without axes: an axis of none or one element in front, for which there is a mask with one."""
    if any(isinstance(one, Array) and one.dtype.kind == "b" and not one.ndim for one in keys):
        i = next(i for i, one in enumerate(keys) if isinstance(one, Array) and one.dtype.kind == "b" and not one.ndim)
        return keys[:i] + [None] + keys[i + 1:], i, slice(None) if bool(keys[i]) else slice(0, 0)
    return None


def get(array: Array, key) -> Array:
    from stride import _routines

    keys = _as_keys(key)
    is_element = len(keys) == array.ndim and all(isinstance(one, (int, np.integer)) for one in keys)
    keys = _expand(keys, array.ndim)
    if not any(isinstance(one, Array) for one in keys):
        view = _view_of(array._node, keys)
        return _element(view) if is_element else wrap(view)
    scalar = _scalar_mask(array, keys)
    if scalar is not None:
        plain, i, part = scalar
        axis = sum(1 for one in plain[:i] if one is None or isinstance(one, slice))
        return get(array, tuple(plain))[(slice(None),) * axis + (part,)] + 0 if array.dtype.kind != "b" else get(
            array, tuple(plain))[(slice(None),) * axis + (part,)]
    by = _ByArrays(array, _fitting_masks(array, keys))
    if by.mask is not None:
        return _routines.compress(by.view, by.mask, by.axis)
    return _routines.gather(by.view, by.arrays, by.axis)


def _element(view: Node) -> Array:
    """An element by integers alone is its value, not a view, as NumPy's scalars are: later assignments do not change it."""
    from stride import _elementwise

    host = view.cached()
    if host is None:
        value = _elementwise._copied(view)
        value._node.device = view.device
        return value
    value = Node(view.session, (), view.dtype, None, (), view.origin)
    host = np.array(host)
    host.setflags(write=False)
    value.keep(host)
    value.device = view.device
    return wrap(value)


def set(array: Array, key, value) -> None:  # noqa: A001
    if not isinstance(value, Array):
        if isinstance(value, (bool, int, float, complex)) and not isinstance(value, np.generic):
            _check_kind(value, array.dtype)
            value = np.array(value, array.dtype)
        else:
            value = np.asarray(value)
        value = wrap(node_of(value, array._node.session))
    keys = _expand(_as_keys(key), array.ndim)
    if any(isinstance(one, Array) for one in keys):
        _set_by_arrays(array, keys, value)
        return
    target = wrap(_view_of(array._node, keys))
    write(target, _fitted(value, target.shape))


def _fitted(value: Array, shape) -> Array:
    if _inference.broadcast(value.shape, shape) == shape:
        return value
    # NumPy lets leading axes of one element go.
    trimmed = value.shape[max(0, value.ndim - len(shape)):]
    if value.size != math.prod(trimmed) or _inference.broadcast(trimmed, shape) != shape:
        raise _errors.ShapeMismatch(f"shape {value.shape} cannot be assigned to shape {shape}")
    return value.reshape(trimmed)


def _set_by_arrays(array: Array, keys: list, value: Array) -> None:
    from stride import _elementwise, _routines

    scalar = _scalar_mask(array, keys)
    if scalar is not None:
        if scalar[2] == slice(None):
            set(array, tuple(scalar[0]), value)
        return
    by = _ByArrays(array, _fitting_masks(array, keys))
    value = value.astype(array.dtype, copy=False)
    if by.mask is None:
        _routines.scatter(by.view, by.arrays, value, by.axis)
    elif value.ndim == 0:
        mask = by.mask.reshape(by.mask.shape + (1,) * (by.view.ndim - by.axis - by.mask.ndim))
        write(by.view, _elementwise.where(mask, value, by.view))
    else:
        _routines.scatter(by.view, list(_routines.nonzero(by.mask)), value, by.axis)


def _check_kind(value, dtype) -> None:
    if isinstance(value, complex) and dtype.kind != "c":
        raise TypeError(f"a complex number cannot be assigned to an array of {dtype}")


def write(target: Array, value: Array) -> None:
    """The elements of `target`, which may be a view, become those of `value`, which broadcasts."""
    node, source = target._node, value.astype(target.dtype, copy=False)._node
    session = node.session
    # Whatever was recorded before reads the old elements.
    session._settle()

    def add(flush):
        operation = pb.Operation(copy=pb.Copy(input=flush.operand(source)))
        operation.outputs.add(handle=flush.materialise(node), existing=True)
        flush.add(operation, node.origin)

    session._flush((), add)
    node.written()
