"""Elements by slices and integers: views, and assignment to them."""

import collections.abc
import operator
from typing import Sequence

import numpy as np

from stride import _elements, _errors, _inference, _origin
from stride._array import Array, host_array, node_of, wrap
from stride._graph import Node, write_in_place
from stride._views import FrozenStrides, View, strides_of_view
from stride.v1 import operation_pb2 as pb

_INT64 = np.iinfo(np.int64)
_MOST = 2**62


def _bound(value):
    if value is None or type(value) is int and -_MOST <= value <= _MOST:
        return value
    return max(_INT64.min, min(_INT64.max, operator.index(value)))


_NO_INDEX = "only integers, slices, ellipses, None and arrays of integers or bools are indices, not {}"


def _as_keys(key) -> list:
    """The parts of an index. Sequences and arrays of the host become Arrays, or Python's numbers if they have no
    axes."""
    return [_as_key(one) for one in (key if isinstance(key, tuple) else (key,))]


def _as_key(one):
    if type(one) is int or one is None or one is Ellipsis or isinstance(one, slice):
        return one
    if isinstance(one, (bool, np.bool_)):
        return wrap(node_of(np.asarray(one)))
    if not isinstance(one, (np.ndarray, Array)):
        if hasattr(one, "__index__"):
            return operator.index(one)
        if not isinstance(one, collections.abc.Sequence) or isinstance(one, (str, bytes)):
            raise IndexError(_NO_INDEX.format(type(one).__name__))
        one = _from_sequence(one)
    if one.dtype.kind not in "biu":
        raise IndexError(_NO_INDEX.format(f"arrays of {one.dtype}"))
    if one.ndim == 0 and one.dtype.kind in "iu" and not _is_unknown(one):
        return int(one)
    return one if isinstance(one, Array) else wrap(node_of(one))


def _is_unknown(one) -> bool:
    """Whether an index without axes belongs to a function that is traced: then it stays an array of indices."""
    return isinstance(one, Array) and one._node.session._is_trace and one._node.cached() is None


def _from_sequence(one) -> np.ndarray:
    from stride import _conversion

    one = _conversion.from_sequence(one)
    return one if one.size else one.astype(np.int64)  # an empty list has no type of its own


def _num_axes(one) -> int:
    """How many axes a part of an index takes."""
    if one is None or one is Ellipsis:
        return 0
    return one.ndim if isinstance(one, Array) and one.dtype.kind == "b" else 1


def _is_array(one) -> bool:
    """Whether a part of an index counts as an array of indices; an integer does, next to others."""
    return isinstance(one, (Array, int, np.integer))


def _expand(keys: list, rank: int) -> list:
    """One entry for each axis (a mask: for its axes), and None for new ones. An Ellipsis without axes stays between
    index arrays, which it parts, as an Ellipsis of several axes does."""
    used = sum(map(_num_axes, keys))
    ellipses = [i for i, one in enumerate(keys) if one is Ellipsis]
    if len(ellipses) > 1:
        raise IndexError("an index can have one ellipsis only")
    if used > rank:
        raise IndexError(f"too many indices: {used} for an array of {rank} axes")
    missing = [slice(None)] * (rank - used)
    if ellipses:
        before, after = keys[:ellipses[0]], keys[ellipses[0] + 1:]
        if not missing and any(map(_is_array, before)) and any(map(_is_array, after)):
            return keys
        return before + missing + after
    return keys + missing


def make_view(node: Node, steps: tuple, shape, strides, host=None, offset: int = 0) -> Node:
    """A deferred view by the steps of `_graph.View`. `host(elements)` gives the same view of the elements when they are
    known here. `offset`: of its first element from that of `node`, in elements."""
    session = node.session
    view = Node(session, tuple(shape), node.dtype, View(steps), (node,), _origin.caller())
    session._record(view)
    view.strides = tuple(strides) if node.strides is None else strides_of_view(node, strides)
    view.share_buffer(node, offset)
    view.device = node.device
    cached = node.cached()
    if cached is not None and host is not None:
        part, copy = host(cached), node.buffer.copy
        # Where writes stay on the host, a view has to see them.
        if copy is None or copy.values is None or np.may_share_memory(part, copy.values):
            view.keep(part)
    return view


def _view_of(node: Node, keys: Sequence) -> Node:
    """The view by integers, slices, None and at most one Ellipsis; axes that no key takes stay whole."""
    extents = node.shape
    old_strides = node.strides or _inference.contiguous_strides(extents)
    shape: list = []
    strides: list = []
    steps: list = []
    # `axis`: of the node; `place`: of what the steps have made of it.
    axis = place = offset = 0
    has_new = has_ellipsis = False
    for one in keys:
        kind = type(one)
        if kind is slice:
            extent, stride = extents[axis], old_strides[axis]
            start, stop, by = one.start, one.stop, one.step
            if start is not None or stop is not None or by is not None:
                start, stop, by = _bound(start), _bound(stop), _bound(by)
                begin, end, distance = slice(start, stop, by).indices(extent)
                extent = len(range(begin, end, distance))
                steps.append(("slice", place, start, stop, by))
                if extent:
                    offset += begin * stride
                    if extent > 1:
                        stride *= distance
            shape.append(extent)
            strides.append(stride)
            axis += 1
            place += 1
        elif one is None:
            shape.append(1)
            strides.append(1)
            has_new = True
        elif one is Ellipsis:
            has_ellipsis = True
            rest = len(extents) - axis - sum(other is not None for other in keys[keys.index(one) + 1:])
            shape += extents[axis:axis + rest]
            strides += old_strides[axis:axis + rest]
            axis += rest
            place += rest
        else:
            extent = extents[axis]
            if not -extent <= one < extent:
                raise out_of_bounds(one, axis, extent)
            offset += (one + extent if one < 0 else one) * old_strides[axis]
            steps.append(("index", place, one))
            axis += 1
    shape += extents[axis:]
    strides += old_strides[axis:]
    if has_new:
        steps.append(("reshape", tuple(shape)))
    whole = keys if has_ellipsis else (*keys, Ellipsis)  # NumPy's element would be no array
    return make_view(node, tuple(steps), shape, strides, lambda host: host[tuple(whole)], offset)


def view(array: Array, *keys) -> Array:
    """`array[keys]` of integers, slices, None and an Ellipsis, which are known to make a view."""
    return wrap(_view_of(array._node, keys), array)


def _is_basic(key, rank: int) -> bool:
    """Whether a key needs no more than `_view_of`: plain integers, slices, None and an Ellipsis that make a view."""
    if type(key) is not tuple:
        kind = type(key)
        return kind is slice and rank > 0 or kind is int and rank > 1 or key is None or key is Ellipsis
    used = num_ellipses = 0
    is_element = True
    for one in key:
        kind = type(one)
        if kind is int:
            used += 1
        else:
            is_element = False
            if kind is slice:
                used += 1
            elif one is Ellipsis:
                num_ellipses += 1
            elif one is not None:
                return False
    return used <= rank and num_ellipses <= 1 and not (is_element and used == rank)


def out_of_bounds(index, axis: int, extent: int) -> _errors.OutOfRange:
    return _errors.OutOfRange(
        f"index {index} is out of bounds for axis {axis} with {extent} elements",
        origin=_origin.describe(_origin.caller()),
    )


def check_bounds(indices: Array, axis: int, extent: int) -> None:
    """Checks an index array of the host at once. The service checks other index arrays, and the read raises."""
    host = indices._node.cached()
    if host is None or not host.size:
        return
    if host.dtype.kind == "i" and host.view(f"u{host.itemsize}").max() < extent:
        return  # the usual case, by one pass: a negative number is large here
    if not (-extent <= host.min() and host.max() < extent):
        raise out_of_bounds(host[(host < -extent) | (host >= extent)].flat[0], axis, extent)


def broadcast_indices(arrays) -> tuple:
    """The common shape of index arrays."""
    try:
        return _inference.broadcast(*(one.shape for one in arrays))
    except ValueError:
        raise IndexError(
            "the shapes of index arrays do not broadcast: " + ", ".join(str(one.shape) for one in arrays)
        ) from None


class _ByArrays:
    """An index with arrays: a view, in which the arrays' axes stand together, and the arrays for them."""

    def __init__(self, array: Array, keys: list):
        from stride import _manipulation

        masks = [one for one in keys if isinstance(one, Array) and one.dtype.kind == "b"]
        others = [one for one in keys if _is_array(one) and not (isinstance(one, Array) and one.dtype.kind == "b")]
        self.mask = masks[0] if len(masks) == 1 and masks[0].ndim and not others else None
        plain, places, arrays, groups = [], [], [], 0
        previous_is_array = False
        for one in keys:
            is_array = _is_array(one)
            if one is Ellipsis:
                pass  # stands for no axes
            elif is_array:
                groups += not previous_is_array
                if isinstance(one, Array) and one.dtype.kind == "b" and not one.ndim:
                    # A bool takes no axis: it is a new one of which the index takes the element, or none.
                    places.append(len(plain))
                    arrays.append(wrap(node_of(np.zeros(int(bool(one)), np.int64), array.session)))
                    plain.append(None)
                    previous_is_array = True
                    continue
                parts = self._parts(one, array, sum(map(_num_axes, (k for k in plain if k is not None))))
                for part in parts:
                    places.append(len(plain))
                    arrays.append(part)
                    plain.append(slice(None))
            else:
                plain.append(one)
            previous_is_array = is_array
        self.view = wrap(_view_of(array._node, plain))
        self.arrays = arrays
        self.axis = places[0] if places else 0
        if self.mask is None:
            self.check(places)
        if groups > 1:
            # Apart from each other: NumPy puts their axes first.
            rest = [i for i in range(self.view.ndim) if i not in places]
            self.view = _manipulation.permute_dims(self.view, (*places, *rest))
            self.axis = 0

    def check(self, places) -> None:
        # Where the indices take nothing NumPy does not look at them.
        if 0 in broadcast_indices(self.arrays):
            return
        for place, one in zip(places, self.arrays):
            check_bounds(one, place, self.view.shape[place])

    def shape(self) -> tuple:
        """The shape of the indexed elements, for an index that is not a single mask."""
        view = self.view.shape
        return (*view[:self.axis], *broadcast_indices(self.arrays), *view[self.axis + len(self.arrays):])

    def _parts(self, one, array: Array, axis: int) -> list:
        """Index arrays, one for each axis that `one` takes; of a lone mask as many places."""
        from stride import _routines

        if not isinstance(one, Array):
            extent = array.shape[axis]
            if not -extent <= one < extent:
                raise out_of_bounds(one, axis, extent)
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


def get(array: Array, key) -> Array:
    node = array._node
    if _is_basic(key, len(node.shape)):
        if type(array) is Array and node.buffer is not None and node.buffer.is_local and _elements.joined(array):
            return array[key]
        return wrap(_view_of(node, key if type(key) is tuple else (key,)), array)
    from stride import _routines

    if _is_lone_index(array, key):
        return _routines.gather(array, [key], 0)
    if isinstance(key, Array) and key.dtype.kind == "b" and key.shape and key.shape == array.shape[:key.ndim]:
        return _routines.take_masked(array, key, 0)
    keys = _as_keys(key)
    is_element = len(keys) == array.ndim and all(isinstance(one, (int, np.integer)) for one in keys)
    keys = _expand(keys, array.ndim)
    if not any(isinstance(one, Array) for one in keys):
        if is_element:
            element = _elements.read(array, tuple(keys))
            if element is not None:
                return element
        view = _view_of(array._node, keys)
        return _element(view) if is_element else wrap(view, array)
    by = _ByArrays(array, _fitting_masks(array, keys))
    if by.mask is not None:
        return _routines.take_masked(by.view, by.mask, by.axis)
    return _routines.gather(by.view, by.arrays, by.axis)


def _is_lone_index(array: Array, key) -> bool:
    """Whether an index is one array of integers, for the first axis, whose bounds are checked here where the host knows
    its elements."""
    if not isinstance(key, Array) or key.dtype.kind not in "iu" or not key.shape or not array.shape:
        return False
    check_bounds(key, 0, array.shape[0])
    return True


def _element(view: Node) -> Array:
    """An element by integers alone is its value, not a view, as NumPy's scalars are: later assignments do not
    change it."""
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
    if _elements.write(array, key, value):
        return
    if _is_lone_index(array, key):
        from stride import _routines

        value = loosely_converted(value, array)
        check_writable(array)
        _routines.scatter(array, [key], fitted(value, key.shape + array.shape[1:]), 0)
        return
    keys = _as_keys(key)
    is_element = len(keys) == array.ndim and all(isinstance(one, (int, np.integer)) for one in keys)
    lone_mask = (
        len(keys) == 1 and isinstance(keys[0], Array) and keys[0].dtype.kind == "b" and keys[0].ndim == array.ndim
    )
    keys = _expand(keys, array.ndim)
    if any(isinstance(one, Array) for one in keys):
        value = loosely_converted(value, array)
        if lone_mask and value.ndim > 1:  # NumPy's own rule
            raise TypeError(f"a mask of all axes takes a value of one axis at most, not {value.ndim}")
        _set_by_arrays(array, keys, value)
        return
    target = wrap(_view_of(array._node, keys))
    check_writable(target)
    is_sequence = isinstance(value, (list, tuple))
    value = element(value, array) if is_element else converted(value, array)
    if is_sequence and value.ndim > target.ndim:
        raise ValueError(f"a sequence of {value.ndim} levels is assigned to {target.ndim} axes")
    write(target, fitted(value, target.shape))


def check_writable(array: Array) -> None:
    """Raises for read-only arrays: broadcast arrays, diagonals, parts in a trace, and views of these."""
    if type(array._node.strides) is FrozenStrides:
        raise ValueError(
            "assignment destination is read-only: it is a broadcast array, a diagonal, the imaginary part of real "
            "numbers, or made so by setflags; while a function is traced, `.real`, `.imag` and `.view(dtype)` are as "
            "well. Write the array itself (`x.real = values`), or a copy of this"
        )


def element(value, array: Array) -> Array:
    """Converts a value for one element as NumPy does, which refuses a sequence of one."""
    if isinstance(value, Array):
        if value.ndim:
            _as_numpy_does(
                np.zeros(1, array.dtype),
                0,
                np.zeros(value.shape, value.dtype) if value.size < 2 else np.zeros(2, value.dtype),
            )
        return converted(value, array)
    host = np.zeros(1, array.dtype)
    _as_numpy_does(host, 0, host_array(value) if isinstance(value, np.ndarray) else value)
    return wrap(node_of(host.reshape(()), array.session))


def _as_numpy_does(host: np.ndarray, key, value) -> None:
    host[key] = value


def converted(value, array: Array) -> Array:
    """Converts a value to the type of the assigned array, with NumPy's rules, errors and warnings: arrays are cast even
    with loss, Python's numbers must fit."""
    dtype = array.dtype
    if isinstance(value, Array):
        return value.astype(dtype, copy=False)  # warns where imaginary parts are dropped
    if isinstance(value, (list, tuple)):
        from stride import _conversion

        value = _conversion.without_arrays(value)
    host = host_array(value) if hasattr(value, "__array__") and not isinstance(value, np.generic) else value
    if not isinstance(host, np.ndarray) or host.dtype != dtype:
        given, host = host, np.empty(np.shape(host), dtype)
        host[...] = given
    return wrap(node_of(host, array.session))


def loosely_converted(value, array: Array) -> Array:
    """The same for values at places that arrays name: there NumPy casts its own scalars as it does arrays."""
    return converted(np.asarray(value) if isinstance(value, np.generic) else value, array)


def fitted(value: Array, shape) -> Array:
    """The value without leading axes of one element, so that it broadcasts to the shape."""
    trimmed = value.shape
    while len(trimmed) > len(shape) and trimmed[0] == 1:
        trimmed = trimmed[1:]
    if len(trimmed) > len(shape) or any(n not in (1, m) for n, m in zip(trimmed[::-1], shape[::-1])):
        raise _errors.ShapeMismatch(
            f"a value of shape {value.shape} does not broadcast to the shape {tuple(shape)} that is assigned",
            reason="SHAPE_MISMATCH",
        )
    return value if trimmed == value.shape else value.reshape(trimmed)


def _set_by_arrays(array: Array, keys: list, value: Array) -> None:
    from stride import _elementwise, _routines

    by = _ByArrays(array, _fitting_masks(array, keys))
    check_writable(by.view)
    if by.mask is None:
        _routines.scatter(by.view, by.arrays, fitted(value, by.shape()), by.axis)
    elif value.ndim == 0:
        mask = by.mask.reshape(by.mask.shape + (1,) * (by.view.ndim - by.axis - by.mask.ndim))
        write(by.view, _elementwise.where(mask, value, by.view))
    else:
        by.arrays, by.mask = list(_routines.nonzero(by.mask)), None
        _routines.scatter(by.view, by.arrays, fitted(value, by.shape()), by.axis)


def write(target: Array, value: Array) -> None:
    """The elements of `target`, which may be a view, become those of `value`, which broadcasts."""
    check_writable(target)
    source = value.astype(target.dtype, copy=False)._node
    write_in_place(target._node, lambda flush: pb.Operation(copy=pb.Copy(input=flush.operand(source))))
