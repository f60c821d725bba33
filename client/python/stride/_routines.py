"""Elements at places that indices say: reads (take, gather), writes (put, scatter), places of nonzero elements."""

import functools
from typing import List, Optional, Tuple

import numpy as np

from stride import _assembly, _dtypes, _inference, _manipulation, _reductions
from stride._array import Array, host_array, node_of, wrap
from stride._graph import Prepared, record, record_several, write_in_place
from stride.v1 import operation_pb2 as pb

__all__ = [
    "nonzero",
    "put",
    "put_along_axis",
    "take",
    "take_along_axis",
]

_MODES = {"raise": pb.INDEX_MODE_RAISE, "wrap": pb.INDEX_MODE_WRAP, "clip": pb.INDEX_MODE_CLIP}


def _mode(name) -> int:
    if type(name) is str and name in _MODES:
        return _MODES[name]
    from stride import _arguments

    return _MODES[_arguments.index_mode(name)]


def _array(x) -> Array:
    return x if isinstance(x, Array) else wrap(node_of(x))


def _record(prepared: Prepared, shape, dtype, nodes: tuple, picks: bool = False, host=None) -> Array:
    """A node for a prepared operation on nodes; `picks` and `host` as in _graph.record."""
    return wrap(record(nodes[0].session, tuple(shape), dtype, prepared, nodes, picks=picks, host=host))


@functools.lru_cache(maxsize=1024)
def _prepared(kind: str, inputs: Tuple[str, ...], rest: str = "", **fields) -> Prepared:
    """An operation of a kind, with these fields of its message; the fields `inputs` take the inputs, and the repeated
    field `rest` those that are left."""
    return prepared_with(pb.Operation(**{kind: fields}), kind, inputs, rest)


def prepared_with(operation: pb.Operation, kind: str, inputs: Tuple[str, ...], rest: str = "") -> Prepared:
    """As `_prepared`, of an operation that has its fields."""
    return Prepared(operation, kind, inputs, rest)


def gather(x: Array, indices: List[Array], axis: int, along_axis: bool = False, mode: str = "raise") -> Array:
    """`x[..., i, j]` with the indices from `axis` on. A read of the result raises for an index out of range."""
    nodes = (x._node, *(index._node for index in indices))
    if along_axis:
        shape = _along_axis(x, indices[0], axis)[1]
    else:
        shape = (
            *x.shape[:axis],
            *_inference.broadcast(*(index.shape for index in indices)),
            *x.shape[axis + len(indices) :],
        )
    def host(values, *places):
        return values[(*(slice(None),) * axis, *places)]

    prepared = _prepared("gather", ("input",), "indices", axis=axis, along_axis=along_axis, mode=_mode(mode))
    return _record(prepared, shape, x.dtype, nodes, picks=True,
                   host=host if mode == "raise" and not along_axis else None)


def _indices(array) -> Array:
    if isinstance(array, (list, tuple)) and not len(array):
        array = np.zeros(0, np.int64)  # an empty list has no type of its own
    array = _array(array)
    if array.dtype.kind not in "iu":
        raise IndexError(f"indices are integers, not {array.dtype}")
    return array


def _numbers(indices) -> Array:
    """Indices of `take` and `put`, where bools count as 0 and 1."""
    if isinstance(indices, (list, tuple)) and not len(indices):
        return _indices(indices)
    array = _array(indices)
    return array.astype(_dtypes.int64) if array.dtype.kind == "b" else _indices(array)


def take(a, indices, axis: Optional[int] = None, out=None, mode: str = "raise") -> Array:
    """The elements, or the slices along an axis, at these places.

    Parameters
        a: an array.
        indices: integers of any shape; negative ones count from the end.
        axis: the axis; None takes from all elements in C order.
        out: array of the result's shape that takes it.
        mode: what an index outside means: `raise` (an error when the result is read), `wrap` or `clip`.
    Returns
        An array of `a`'s type with the axes of `indices` in place of the axis.
    Raises
        IndexError for an index outside; AxisError for an axis that `a` lacks.
    Example
        >>> st.take(st.array([4, 5, 6]), st.array([0, -1])).tolist()
        [4, 6]
    """
    if out is not None:
        from stride import _arguments

        return _arguments.give(take(a, indices, axis, None, mode), out)
    x = _array(a)
    if axis is None:
        x, axis = _assembly.flat(x), 0
    if not x.ndim:
        x = _manipulation.reshape(x, (1,))
    indices, axis = _numbers(indices), _inference.normal_axis(axis, x.ndim)
    if mode == "raise":
        from stride import _indexing

        _indexing.check_bounds(indices, axis, x.shape[axis])
    elif _mode(mode) and not x.shape[axis] and indices.size:
        raise IndexError("cannot do a non-empty take from an empty axes.")
    return gather(x, [indices], axis, mode=mode)


def take_along_axis(arr, indices, axis: Optional[int] = -1) -> Array:
    """The elements at indices along an axis, separate for each slice, such as `argsort` returns.

    Parameters
        arr: an array.
        indices: integers with as many axes, which broadcast with `arr` but for the axis.
        axis: the axis; None takes from all elements in C order.
    Returns
        An array of `arr`'s type.
    Raises
        IndexError for an index outside, and for indices that do not broadcast.
    Example
        >>> st.take_along_axis(st.array([[3, 1]]), st.array([[1, 0]]), axis=1).tolist()
        [[1, 3]]
    """
    from stride import _indexing

    x, indices = _array(arr), _indices(indices)
    if axis is None:
        if indices.ndim != 1:
            raise ValueError(f"without an axis the indices have one axis, not {indices.ndim}")
        x, axis = _assembly.flat(x), 0
    axis, _ = _along_axis(x, indices, axis)
    _indexing.check_bounds(indices, axis, x.shape[axis])
    return (
        gather(x, _places(x, indices, axis), 0)
        if _widens(x, indices, axis)
        else gather(x, [indices], axis, along_axis=True)
    )


def _num_nonzero(x: Array) -> int:
    """How many elements are not zero: read, and kept until they are written."""
    node = x._node
    count = node.known_count()
    if count is None:
        version = node.buffer.version if node.buffer is not None else 0
        count = int(_reductions.count_nonzero(x))
        node.keep_count(version, count)
    return count


def take_masked(x: Array, mask: Array, axis: int) -> Array:
    """`x[..., mask]` with the mask from `axis` on. Counts the mask's true elements first: one round trip, unless they
    were counted since the mask was written last."""
    if mask.shape != x.shape[axis:axis + mask.ndim]:
        raise IndexError(f"a mask of shape {mask.shape} does not fit axes {x.shape[axis:axis + mask.ndim]}")
    count = _num_nonzero(mask)
    shape = (*x.shape[:axis], count, *x.shape[axis + mask.ndim:])
    prepared = _prepared("compress", ("input", "mask"), axis=axis, count=count)
    return _record(prepared, shape, x.dtype, (x._node, mask._node),
                   host=lambda values, mask: values[(*(slice(None),) * axis, mask)])


def nonzero(a) -> Tuple[Array, ...]:
    """The places of the elements that are not zero. These are counted first, which is one round trip where the array
    was written since the last count.

    Parameters
        a: an array of one axis or more.
    Returns
        A tuple of arrays of int64, one for each axis.
    Raises
        ValueError for an array without axes.
    Example
        >>> [one.tolist() for one in st.nonzero(st.array([0, 5, 6]))]
        [[1, 2]]
    """
    x = _array(a)
    if not x.ndim:
        raise ValueError("nonzero takes no scalars")
    count = _num_nonzero(x)

    def build(flush, operands, handles, origin):
        operation = pb.Operation(nonzero=pb.Nonzero(input=operands[0], count=count))
        for handle in handles:
            operation.outputs.add(handle=handle)
        flush.add(operation, origin)

    return tuple(map(wrap, record_several(x.session, [((count,), _dtypes.int64)] * x.ndim, build, (x._node,))))


def scatter(
    target: Array, indices: List[Array], values: Array, axis: int, along_axis: bool = False, mode: str = "raise"
) -> None:
    """`target[..., i, j] = values`, in place; among equal indices the last counts. The caller ensures that the values
    broadcast to the shape of the indices."""
    from stride import _indexing

    _indexing.check_writable(target)
    number = _mode(mode)

    def make(flush):
        scatter = pb.Scatter(values=flush.operand(values._node), axis=axis, along_axis=along_axis, mode=number)
        scatter.indices.extend(flush.operand(index._node) for index in indices)
        return pb.Operation(scatter=scatter)

    write_in_place(target._node, make)


def put(a: Array, ind, v, mode: str = "raise") -> None:
    """Writes the elements at places in C order.

    Parameters
        a: the array that is changed.
        ind: integers of any shape.
        v: the values, which are repeated when they are fewer.
        mode: what an index outside means: `raise` (an error when the result is read), `wrap` or `clip`.
    Returns
        None.
    Raises
        IndexError for an index outside; TypeError for an `a` on the host.
    Example
        >>> x = st.zeros(3, st.int64)
        >>> st.put(x, [0, 2], [5, 6])
        >>> x.tolist()
        [5, 0, 6]
    """
    from stride import _indexing

    x, indices, values = a, ind, v

    _changed(x, "put")
    if not isinstance(indices, Array):
        indices = host_array(indices)
        if not indices.size:
            indices = indices.astype(np.int64)
        indices = wrap(node_of(indices, x.session))
    indices = _numbers(indices)
    values = _indexing.loosely_converted(values, x)
    if not indices.size or not values.size:
        return
    indices = _assembly.flat(indices)
    if mode == "raise":
        _indexing.check_bounds(indices, 0, x.size)
    values = _assembly.flat(values)
    if values.size != 1:
        values = _assembly.tile(values, -(-indices.size // values.size))[:indices.size]
    _indexing.check_writable(x)
    flat = _assembly.flat(x)
    shared = flat is x or x._node.strides is None
    scatter(flat, [indices], values, 0, mode=mode)
    if not shared:
        from stride import _indexing

        _indexing.write(x, _manipulation.reshape(flat, x.shape))


def put_along_axis(arr: Array, indices, values, axis: Optional[int] = -1) -> None:
    """Writes the elements at indices along an axis, separate for each slice.

    Parameters
        arr: the array that is changed.
        indices: integers with as many axes, which broadcast with `arr` but for the axis.
        values: what broadcasts to the indices.
        axis: the axis; None takes from all elements in C order.
    Returns
        None.
    Raises
        IndexError for an index outside; TypeError for an `arr` on the host.
    Example
        >>> x = st.zeros((1, 2), st.int64)
        >>> st.put_along_axis(x, st.array([[1]]), 7, axis=1)
        >>> x.tolist()
        [[0, 7]]
    """
    from stride import _indexing

    x = arr

    _changed(x, "put_along_axis")
    indices = _indices(indices)
    if axis is None:
        if indices.ndim != 1:
            raise ValueError(f"without an axis the indices have one axis, not {indices.ndim}")
        values = _indexing.fitted(_indexing.loosely_converted(values, x), indices.shape)
        put(x, indices, _manipulation.broadcast_to(values, indices.shape))
        return
    axis, shape = _along_axis(x, indices, axis)
    _indexing.check_bounds(indices, axis, x.shape[axis])
    values = _indexing.fitted(_indexing.loosely_converted(values, x), shape)
    if _widens(x, indices, axis):
        scatter(x, _places(x, indices, axis), values, 0)
    else:
        scatter(x, [indices], values, axis, along_axis=True)


def _along_axis(x: Array, indices: Array, axis: int) -> Tuple[int, tuple]:
    """The axis, from 0, and the shape of the elements that indices along it select."""
    if x.ndim != indices.ndim:
        raise ValueError(f"x and the indices must have as many axes: {x.ndim} and {indices.ndim}")
    axis = _inference.normal_axis(axis, x.ndim)
    shape = []
    for i, (extent, taken) in enumerate(zip(x.shape, indices.shape)):
        if i != axis and taken not in (1, extent) and extent != 1:
            raise IndexError(
                f"indices of shape {indices.shape} do not broadcast along axis {axis} of an array of shape {x.shape}"
            )
        shape.append(taken if i == axis or extent == 1 else extent)
    return axis, tuple(shape)


def _widens(x: Array, indices: Array, axis: int) -> bool:
    """True if an axis of one element meets more indices. Each element of the axis is then taken several times, which
    the service's operation does not do."""
    return any(
        i != axis and extent == 1 and taken != 1 for i, (extent, taken) in enumerate(zip(x.shape, indices.shape))
    )


def _places(x: Array, indices: Array, axis: int) -> List[Array]:
    """Converts indices along one axis to indices of all axes."""
    from stride import _creation

    return [
        (
            indices
            if i == axis
            else _manipulation.reshape(_creation.arange(extent), tuple(extent if i == j else 1 for j in range(x.ndim)))
        )
        for i, extent in enumerate(x.shape)
    ]


def _changed(x, name: str) -> None:
    if not isinstance(x, Array):
        raise TypeError(f"{name} changes a stride array, not {type(x).__name__}")


def linear_places(x: Array, indices) -> Array:
    """Places in C order of the elements of `x[indices]`, as int64."""
    from stride import _creation

    return _manipulation.reshape(_creation.arange(x.size), x.shape)[indices]
