"""Functions that move elements by what other elements say: indices, order, running results."""

import functools
import math
import operator
from typing import List, NamedTuple, Optional, Tuple

import numpy as np

from stride import _dtypes, _elementwise, _errors, _inference, _manipulation, _reductions, _ufunc
from stride._array import _SCALARS, Array, array_of, host_array, node_of, wrap
from stride._graph import INLINE_BYTES, Node, Number, Prepared, record, record_several, write_in_place
from stride.v1 import array_pb2, operation_pb2 as pb

__all__ = [
    "argsort",
    "bincount",
    "cumprod",
    "cumsum",
    "cumulative_prod",
    "cumulative_sum",
    "group_reduce",
    "group_sum",
    "isin",
    "nonzero",
    "put",
    "put_along_axis",
    "searchsorted",
    "sort",
    "take",
    "take_along_axis",
    "top_k",
    "unique_all",
    "unique_counts",
    "unique_inverse",
    "unique_values",
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


# --- order ---

def _sort(x, axis: Optional[int], descending: bool, indices: bool, name: str) -> Array:
    node = node_of(x)
    if axis is None:
        node, axis = (
            _manipulation.reshape(wrap(node) if not isinstance(x, Array) else x, (math.prod(node.shape),))._node,
            0,
        )
    axis = _inference.normal_axis(axis, len(node.shape))
    prepared = _prepared("sort", ("input",), axis=axis, descending=bool(descending), indices=indices)
    numpys = functools.partial(np.argsort if indices else np.sort, axis=axis, kind="stable")
    return _record(prepared, node.shape, _dtypes.int64 if indices else node.dtype, (node,),
                   host=None if descending else numpys)


_KINDS = ("quicksort", "heapsort", "stable", "mergesort")


def _check_kind(kind, order, stable) -> None:
    if order is not None:
        from stride import _arguments

        _arguments.refuse_fields(order)
    if kind is not None and (
        not isinstance(kind, str) or kind.lower() not in _KINDS and kind[:1].lower() not in tuple("qhsm")
    ):
        refused = ValueError if isinstance(kind, str) else TypeError
        raise refused(f"sort kind must be one of {', '.join(_KINDS)} (got {kind!r})")
    if kind is not None and stable is not None:
        raise ValueError("`kind` and `stable` parameters can't be provided at the same time. Use only one of them.")


def sort(
    a, axis: Optional[int] = -1, kind=None, order=None, *, stable: Optional[bool] = None, descending: bool = False
) -> Array:
    """The elements in rising order along an axis; NaN comes last.

    Parameters
        a: an array.
        axis: the axis; None sorts all elements, flattened.
        kind, stable: NumPy's names of algorithms; every sort here is stable.
        order: must be None, since it names fields of structured arrays.
        descending: whether the order falls.
    Returns
        An array of `a`'s type.
    Raises
        AxisError for an axis that `a` lacks; ValueError for another kind.
    Example
        >>> st.sort(st.array([3, 1, 2])).tolist()
        [1, 2, 3]
    """
    _check_kind(kind, order, stable)
    return _sort(a, axis, descending, False, "sort")


def argsort(
    a, axis: Optional[int] = -1, kind=None, order=None, *, stable: Optional[bool] = None, descending: bool = False
) -> Array:
    """The places of the elements in rising order along an axis, as int64.

    Parameters
        a: an array.
        axis: the axis; None sorts all elements, flattened.
        kind: NumPy's names of algorithms; every sort here is stable.
        order: must be None, since it names fields of structured arrays.
        stable: NumPy's names of algorithms; every sort here is stable.
        descending: whether the order falls.
    Returns
        An array of int64 of `a`'s shape.
    Raises
        AxisError for an axis that `a` lacks; ValueError for another kind.
    Example
        >>> st.argsort(st.array([3, 1, 2])).tolist()
        [1, 2, 0]
    """
    _check_kind(kind, order, stable)
    if not isinstance(a, Array):
        a = array_of(a)
    if not a.ndim:
        _inference.reduced_axes(axis, 0)
        from stride import _creation

        return _creation.full_in(a.session, (1,), 0, _dtypes.int64)
    return _sort(a, axis, descending, True, "argsort")


def ranked(x: Array, ranks: Array, axis: int) -> Array:
    """The elements of given ranks along an axis, as a sort would order them. `ranks`: integers of one axis,
    or for each slice. NaN comes last. A read of the result raises for a rank out of range."""
    shape = list(x.shape)
    shape[axis] = ranks.shape[0 if ranks.ndim == 1 else axis]
    return _record(_prepared("select", ("input", "ranks"), axis=axis), shape, x.dtype, (x._node, ranks._node))


def ranked_at(x: Array, ranks: Tuple[int, ...], axis: int) -> Array:
    """`ranked` with one axis of places that the host knows, which travel within the command."""
    if x.session._is_trace or 8 * len(ranks) > INLINE_BYTES:
        return ranked(x, wrap(node_of(np.array(ranks, np.int64), x.session)), axis)
    shape = (*x.shape[:axis], len(ranks), *x.shape[axis + 1:])
    return _record(_selection(axis, ranks), shape, x.dtype, (x._node,))


@functools.lru_cache(maxsize=256)
def _selection(axis: int, ranks: Tuple[int, ...]) -> Prepared:
    spec = array_pb2.ArraySpec(data_type=_dtypes.NUMBERS[_dtypes.int64], shape=(len(ranks),))
    inline = array_pb2.InlineArray(spec=spec, data=np.array(ranks, np.int64).tobytes())
    select = pb.Select(axis=axis, ranks=pb.Operand(inline_array=inline))
    return prepared_with(pb.Operation(select=select), "select", ("input",))


def partitioned(x: Array, places: List[int], axis: int, indices: bool) -> Array:
    """`x`, or where its elements were, in an order with those at these places where a sort would put them."""
    prepared = _prepared("partition", ("input",), axis=axis, kth=tuple(places), indices=indices)
    return _record(prepared, x.shape, _dtypes.int64 if indices else x.dtype, (x._node,))


# The service's most keys of one order.
MOST_KEYS = 33


def ordered_by(keys: List[Array], axis: int) -> Array:
    """The places of the elements in an order by the first of the keys, then by the second, and so on."""
    nodes = tuple(key._node for key in keys)
    prepared = _prepared("sort", ("input",), "more_keys", axis=axis, indices=True)
    return _record(prepared, keys[0].shape, _dtypes.int64, nodes)


def searchsorted(a, v, side: str = "left", sorter=None) -> Array:
    """The places at which elements would keep a sorted array in order.

    Parameters
        a: an array of one axis in rising order, or with `sorter` in any.
        v: the elements, of any shape.
        side: left for the first such place, right for the last.
        sorter: integers that bring `a` in order, as `argsort` gives them.
    Returns
        An array of int64 of `v`'s shape.
    Raises
        ValueError for another side; ShapeMismatch for an `a` of more axes.
    Example
        >>> st.searchsorted(st.array([1, 3, 5]), st.array([3, 4])).tolist()
        [1, 2]
    """
    x1, x2 = a, v
    if not isinstance(side, str):
        raise TypeError(f"side is left or right, not {type(side).__name__}")
    if side not in ("left", "right"):
        raise ValueError(f"side is left or right, not {side}")
    x1 = array_of(x1, x2.session if isinstance(x2, Array) else None)
    if x1.ndim != 1:
        raise _errors.ShapeMismatch(
            f"searchsorted takes one axis of sorted elements, not {x1.ndim}", reason="SHAPE_MISMATCH"
        )
    if sorter is not None:
        sorter = _array(sorter)
        if sorter.dtype.kind not in "iu":
            raise _errors.DataTypeMismatch(
                f"searchsorted's sorter is of integers, not of {sorter.dtype}", reason="DATA_TYPE_MISMATCH"
            )
        if sorter.shape != x1.shape:
            raise _errors.ShapeMismatch(
                f"searchsorted's sorter has the shape {sorter.shape}, what it sorts {x1.shape}", reason="SHAPE_MISMATCH"
            )
        x1 = take(x1, sorter)
    nodes = (x1._node, node_of(x2, x1.session))
    prepared = _prepared("search", ("sorted", "values"), right=side == "right")
    return _record(prepared, nodes[1].shape, _dtypes.int64, nodes, picks=True)


# --- running results ---


def _running(
    function: str, x, axis: Optional[int], dtype, include_initial: bool, reverse: bool, exclusive: bool, name: str
) -> Array:
    array = _array(x)
    if axis is None:
        if array.ndim > 1:
            raise ValueError(f"{name} of several axes needs axis=")
        axis = 0
    if not array.ndim:
        array = _manipulation.reshape(array, (1,))
    return _ufunc.accumulate(
        function, array, axis, dtype, include_initial=include_initial, reverse=reverse, exclusive=exclusive
    )


def cumulative_sum(
    x, /, *, axis: Optional[int] = None, dtype=None, out=None, include_initial: bool = False, reverse: bool = False,
    exclusive: bool = False,
) -> Array:
    """Running sums along an axis.

    Parameters
        x: an array.
        axis: the axis, which may be left out where there is one.
        dtype: in which to sum; integers default to int64 or uint64, others to their own type.
        out: array of the result's shape that takes it.
        include_initial: whether a 0 stands in front.
        reverse: whether they run from the last element to the first.
        exclusive: whether each is of the elements before it.
    Returns
        An array of `x`'s shape, or with `include_initial` of one element more.
    Raises
        ValueError where an axis is needed and not given; AxisError for an axis that `x` lacks.
    Example
        >>> st.cumulative_sum(st.array([1, 2, 3])).tolist()
        [1, 3, 6]
    """
    return _given(_running("add", x, axis, dtype, include_initial, reverse, exclusive, "cumulative_sum"), out)


def cumulative_prod(
    x, /, *, axis: Optional[int] = None, dtype=None, out=None, include_initial: bool = False, reverse: bool = False,
    exclusive: bool = False,
) -> Array:
    """Running products along an axis.

    Parameters
        x: an array.
        axis: the axis, which may be left out where there is one.
        dtype: in which to sum; integers default to int64 or uint64, others to their own type.
        out: array of the result's shape that takes it.
        include_initial: whether a 0 stands in front.
        reverse: whether they run from the last element to the first.
        exclusive: whether each is of the elements before it.
    Returns
        An array of `x`'s shape, or with `include_initial` of one element more.
    Raises
        ValueError where an axis is needed and not given; AxisError for an axis that `x` lacks.
    Example
        >>> st.cumulative_prod(st.array([1, 2, 3])).tolist()
        [1, 2, 6]
    """
    return _given(_running("multiply", x, axis, dtype, include_initial, reverse, exclusive, "cumulative_prod"), out)


def _given(result: Array, out) -> Array:
    if out is None:
        return result
    from stride import _arguments

    return _arguments.give(result, out, "unsafe")


def _all_or_along(name: str, a, axis: Optional[int], dtype, out) -> Array:
    array = _array(a)
    if axis is None:
        array, axis = _manipulation.flat(array), 0
    elif not array.ndim:
        _inference.reduced_axes(axis, 0)
        array, axis = _manipulation.reshape(array, (1,)), 0
    return _given(_ufunc.accumulate(name, array, axis, dtype), out)


def cumsum(a, axis: Optional[int] = None, dtype=None, out=None) -> Array:
    """Running sums along an axis.

    Parameters
        a: an array.
        axis: the axis; None flattens `a` first.
        dtype: in which to sum; integers default to int64 or uint64, others to their own type.
        out: array of the result's shape that takes it.
    Returns
        An array.
    Raises
        AxisError for an axis that `a` lacks.
    Example
        >>> st.cumsum(st.array([[1, 2], [3, 4]])).tolist()
        [1, 3, 6, 10]
    """
    return _all_or_along("add", a, axis, dtype, out)


def cumprod(a, axis: Optional[int] = None, dtype=None, out=None) -> Array:
    """Running products along an axis.

    Parameters
        a: an array.
        axis: the axis; None flattens `a` first.
        dtype: in which to sum; integers default to int64 or uint64, others to their own type.
        out: array of the result's shape that takes it.
    Returns
        An array.
    Raises
        AxisError for an axis that `a` lacks.
    Example
        >>> st.cumprod(st.array([1, 2, 3])).tolist()
        [1, 2, 6]
    """
    return _all_or_along("multiply", a, axis, dtype, out)


# --- by indices ---

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
        x, axis = _manipulation.flat(x), 0
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
        x, axis = _manipulation.flat(x), 0
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
    indices = _manipulation.flat(indices)
    if mode == "raise":
        _indexing.check_bounds(indices, 0, x.size)
    values = _manipulation.flat(values)
    if values.size != 1:
        values = _manipulation.tile(values, -(-indices.size // values.size))[:indices.size]
    _indexing.check_writable(x)
    flat = _manipulation.flat(x)
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


# --- sets ---

class UniqueAll(NamedTuple):
    values: Array
    indices: Array
    inverse_indices: Array
    counts: Array


class UniqueCounts(NamedTuple):
    values: Array
    counts: Array


class UniqueInverse(NamedTuple):
    values: Array
    inverse_indices: Array


def unique(x, values_only: bool = False, equal_nan: bool = False):
    """UniqueAll, or the values. NaN differs from itself, as in the standard; with `equal_nan` it does not, as in
    NumPy's `unique`."""
    from stride import _creation

    x = _array(x)
    flat = _manipulation.flat(x)
    order = None if values_only else argsort(flat)
    ordered = sort(flat) if values_only else take(flat, order)
    if not x.size:
        empty = _creation.zeros((0,), dtype=_dtypes.int64)
        return UniqueAll(flat, empty, _manipulation.reshape(empty, x.shape), empty)
    differs = ordered[1:] != ordered[:-1]
    if equal_nan and ordered.dtype.kind not in "biu":
        differs = _elementwise.logical_and(
            differs, _elementwise.logical_not(_elementwise.isnan(ordered[:-1]))
        )  # they are last
    first = _manipulation.concat([_creation.ones((1,), dtype=_dtypes.bool), differs])
    values = take_masked(ordered, first, 0)
    if values_only:
        return values
    begins = nonzero(first)[0]
    counts = _manipulation.concat([begins[1:], _creation.full((1,), x.size)]) - begins
    inverse = _creation.zeros((x.size,), dtype=_dtypes.int64)
    scatter(inverse, [order], cumulative_sum(first) - 1, 0)
    return UniqueAll(values, take(order, begins), _manipulation.reshape(inverse, x.shape), counts)


def unique_all(x, /) -> UniqueAll:
    """The different elements in rising order, the places of their first occurrences, the places among them of all
    elements, and how often each occurs; NaN differs from itself. How many there are is read.

    Parameters
        x: an array, or what becomes one.
    Returns
        A named tuple: `values`, `indices`, `inverse_indices` and `counts`.
    Example
        >>> st.unique_all(st.array([3, 1, 3])).counts.tolist()
        [1, 2]
    """
    return unique(x)


def unique_counts(x, /) -> UniqueCounts:
    """The values and counts of `unique_all`.

    Parameters
        x: an array, or what becomes one.
    Returns
        A named tuple: `values` and `counts`.
    Example
        >>> st.unique_counts(st.array([3, 1, 3])).values.tolist()
        [1, 3]
    """
    all_ = unique(x)
    return UniqueCounts(all_.values, all_.counts)


def unique_inverse(x, /) -> UniqueInverse:
    """The values and inverse indices of `unique_all`.

    Parameters
        x: an array, or what becomes one.
    Returns
        A named tuple: `values` and `inverse_indices`.
    Example
        >>> st.unique_inverse(st.array([3, 1, 3])).inverse_indices.tolist()
        [1, 0, 1]
    """
    all_ = unique(x)
    return UniqueInverse(all_.values, all_.inverse_indices)


def unique_values(x, /) -> Array:
    """The values of `unique_all`.

    Parameters
        x: an array, or what becomes one.
    Returns
        An array of one axis.
    Example
        >>> st.unique_values(st.array([3, 1, 3])).tolist()
        [1, 3]
    """
    values = unique(x, values_only=True)
    return values.values if isinstance(values, UniqueAll) else values


def isin(
    element, test_elements, assume_unique: bool = False, invert: bool = False, *, kind: Optional[str] = None
) -> Array:
    """Whether each element is one of others.

    Parameters
        element: an array of any shape.
        test_elements: the others.
        assume_unique, kind: NumPy's names of ways to compute it, which change nothing of the result.
        invert: whether the answer is the opposite.
    Returns
        An array of bool of `element`'s shape.
    Raises
        ValueError for another kind.
    Example
        >>> st.isin(st.array([1, 2, 3]), [2, 5]).tolist()
        [False, True, False]
    """
    x1, x2 = element, test_elements
    if kind not in (None, "sort", "table"):
        raise ValueError(f"kind is sort or table, not {kind!r}")
    x1, x2 = _beside(x1, x2), _beside(x2, x1)
    session = next((one.session for one in (x1, x2) if isinstance(one, Array)), None)
    x1, x2 = array_of(x1, session), array_of(x2, session)
    dtype = _inference.promote(x1.dtype, x2.dtype)
    flat = _manipulation.reshape(x2.astype(dtype, copy=False), (x2.size,))
    values = x1.astype(dtype, copy=False)
    if not flat.size or not values.size:
        from stride import _creation

        return _creation.full_in(values.session, values.shape, invert, _dtypes.bool)
    ordered = sort(flat)
    places = _elementwise.minimum(searchsorted(ordered, values), flat.size - 1)
    found = gather(ordered, [places], 0)
    return found != values if invert else found == values


def _beside(one, other):
    """Converts a Python number to the type of the other array, if it fits."""
    if not isinstance(one, _SCALARS) or not isinstance(other, Array):
        return one
    try:
        return np.full((), one, _inference.promote(other.dtype, Number(one).type))
    except OverflowError:
        return np.asarray(one)


# --- counting and grouping ---

def top_k(x, k: int, /, *, axis: int = -1, largest: bool = True) -> Tuple[Array, Array]:
    """The `k` largest elements along an axis (or the least), in order, and where they were.

    Parameters
        x: an array, or what becomes one.
        k: how many elements.
        axis: the axis.
        largest: whether the largest elements are taken, else the least.
    Returns
        A tuple of two arrays: the elements, and their places as int64.
    Raises
        ValueError for a `k` that is negative or more than the axis has.
    Example
        >>> [one.tolist() for one in st.top_k(st.array([3, 9, 5]), 2)]
        [[9, 5], [1, 2]]
    """
    from stride import _creation

    x = _array(x)
    axis = _inference.normal_axis(axis, x.ndim)
    if not 0 <= k <= x.shape[axis]:
        raise ValueError(f"{k} of {x.shape[axis]} elements cannot be had")
    shape = (*x.shape[:axis], k, *x.shape[axis + 1:])
    if not k:
        return _creation.zeros(shape, dtype=x.dtype), _creation.zeros(shape, dtype=_dtypes.int64)

    def build(flush, operands, handles, origin):
        operation = pb.Operation(top_k=pb.TopK(input=operands[0], axis=axis, k=k, smallest=not largest))
        for handle in handles:
            operation.outputs.add(handle=handle)
        flush.add(operation, origin)

    values, places = record_several(x.session, [(shape, x.dtype), (shape, _dtypes.int64)], build, (x._node,))
    return wrap(values), wrap(places)


def group_reduce(function: str, values, groups, num_groups: int, *, axis: int = 0, dtype=None) -> Array:
    """The elements of each group along an axis, combined by a function of two inputs (`add`, `maximum`, a client's):
    element g along the result's axis is of those whose group is g, in their order. A group that no element has gets
    the function's identity. `values` may be one number for all.

    Parameters
        function: the name of a function of two inputs, such as `add`.
        values: an array, or one number for all places.
        groups: integers from 0 to `num_groups` - 1, one for each element along the axis.
        num_groups: how many groups there are.
        axis: the axis along which the groups lie.
        dtype: the element type of the result; by default the one that NumPy gives it.
    Returns
        An array with `num_groups` elements along the axis.
    Raises
        IndexError for a group outside; NotFound for a function that there is not.
    Example
        >>> st.group_reduce("add", st.array([1, 2, 4]), st.array([0, 1, 0]), 2).tolist()
        [5, 2]
    """
    groups = _indices(groups)
    value = Number(values) if isinstance(values, _SCALARS) else node_of(values, groups.session)
    if type(value) is Number:
        shape, kind = (num_groups,), value.type if isinstance(value.type, np.dtype) else np.asarray(value.value).dtype
        axis = 0
    else:
        axis = _inference.normal_axis(axis, len(value.shape))
        shape, kind = (*value.shape[:axis], num_groups, *value.shape[axis + 1:]), value.dtype
        if groups.shape != (value.shape[axis],):
            raise _errors.ShapeMismatch(
                f"groups of {groups.shape} for {value.shape[axis]} elements", reason="SHAPE_MISMATCH"
            )
    kind = _ufunc.accumulated_type(function, kind) if dtype is None else _dtypes.dtype_of(dtype)
    message = pb.GroupReduce(function=function, num_groups=num_groups, axis=axis, data_type=_dtypes.NUMBERS[kind])
    nodes: Tuple[Node, ...] = (groups._node,)
    if type(value) is Node:
        nodes = (groups._node, value)
    else:
        message.values.scalar.CopyFrom(value.to_proto())
    prepared = prepared_with(pb.Operation(group_reduce=message), "group_reduce", ("groups", "values"))
    return _record(prepared, shape, kind, nodes)


def bincount(x, /, weights=None, minlength: int = 0) -> Array:
    """How often each number occurs, or the sum of its weights; the greatest is read to know how many there are.

    Parameters
        x: an array of one axis of integers that are not negative.
        weights: an array of its shape.
        minlength: how many counts there are at least.
    Returns
        An array of int64, or with weights of float64.
    Raises
        ValueError for negative numbers; DataTypeMismatch for what are no integers; ShapeMismatch.
    Example
        >>> st.bincount(st.array([0, 2, 2])).tolist()
        [1, 0, 2]
    """
    from stride import _creation

    minlength = operator.index(minlength)
    if minlength < 0:
        raise ValueError("'minlength' must not be negative")
    x = _array(np.zeros(0, np.int64) if isinstance(x, (list, tuple)) and not len(x) else x)
    if x.ndim != 1 or x.dtype.kind not in "biu":
        raise _errors.DataTypeMismatch(f"bincount is of one axis of integers, not {x.ndim} of {x.dtype}")
    x = x.astype(_dtypes.int64, copy=False)
    length = minlength
    if x.size:
        least, greatest = _extent(x)
        if least < 0:
            raise ValueError("bincount takes no negative numbers")
        length = max(minlength, int(greatest) + 1)
    if weights is None:
        return group_reduce("add", 1, x, length) if length else _creation.zeros((0,), dtype=_dtypes.int64)
    weights = _array(weights).astype(_dtypes.float64, copy=False)
    if weights.shape != x.shape:
        raise _errors.ShapeMismatch(f"bincount of {x.shape} with weights of {weights.shape}")
    if not length:  # without numbers NumPy counts, whatever the weights
        return _creation.zeros((0,), dtype=_dtypes.int64)
    return group_reduce("add", weights, x, length)


def histogram(x, /, bins=10, range=None, weights=None) -> Tuple[Array, Array]:  # noqa: A002
    """NumPy's: counts in `bins` (a number of equal ones, or their edges), and the edges."""
    x = _array(x)
    uniform = None
    if isinstance(bins, (int, np.integer)):
        edges = _uniform_edges(x, int(bins), range)
        # In single precision the edges are what NumPy makes of them, step by step.
        if edges.dtype == _dtypes.float64:
            uniform = pb.Histogram.Uniform(count=int(bins), low=edges[0], high=edges[-1])
        edges = _array(edges)
    else:
        edges = _array(bins)
        if edges.ndim != 1 or edges.size < 2:
            raise ValueError("the edges of bins are one axis of two or more")
        if not edges.session._is_trace:  # where nothing can be read
            known = edges._read()
            if (known[:-1] > known[1:]).any():
                raise ValueError("the edges of bins must not fall")
    if x.dtype.kind == "f" and edges.dtype.kind == "f" and x.dtype.itemsize < edges.dtype.itemsize:
        x = x.astype(edges.dtype)  # an element is compared with the edges as they are
    nodes = [x._node] if uniform else [x._node, edges._node]
    kind = _dtypes.int64
    if weights is not None:
        weights = _array(weights)
        if weights.shape != x.shape:
            raise _errors.ShapeMismatch(f"a histogram of {x.shape} with weights of {weights.shape}")
        nodes.append(weights._node)
        kind = _dtypes.float64 if weights.dtype.kind in "biu" else weights.dtype
    inputs = ("input", *(() if uniform else ("edges",)), *(() if weights is None else ("weights",)))
    prepared = prepared_with(pb.Operation(histogram=pb.Histogram(uniform=uniform)), "histogram", inputs)
    counts = _record(prepared, (edges.size - 1,), kind, tuple(nodes))
    return counts if weights is None else counts.astype(weights.dtype, copy=False), edges


def _extent(x: Array) -> tuple:
    """The least and the greatest element, read in one round trip."""
    ends = _reductions.min(x), _reductions.max(x)
    return tuple([values[()] for values in x.session._read_several([one._node for one in ends])])


def _uniform_edges(x: Array, bins: int, range) -> np.ndarray:  # noqa: A002
    if bins < 1:
        raise ValueError(f"a histogram has at least one bin, not {bins}")
    if range is None:
        low, high = _extent(x) if x.size else (0.0, 1.0)
    else:
        low, high = range
    if type(low) in (int, float) and type(high) in (int, float):  # as programs give them, again and again
        return _known_edges(low, high, bins, x.dtype)
    return _edges_between(low, high, bins, x.dtype)


def _edges_between(low, high, bins: int, dtype: np.dtype) -> np.ndarray:
    if not (math.isfinite(low) and math.isfinite(high)) or low > high:
        raise ValueError(f"a histogram's range is finite and rises, not {low} to {high}")
    if low == high:
        low, high = low - 0.5, high + 0.5
    kind = np.result_type(low, high, dtype)
    edges = np.linspace(low, high, bins + 1, dtype=np.result_type(kind, float) if kind.kind in "biu" else kind)
    if (edges[:-1] >= edges[1:]).any():
        raise ValueError(f"Too many bins for data range. Cannot create {bins} finite-sized bins.")
    edges.setflags(write=False)
    return edges


_known_edges = functools.lru_cache(maxsize=64, typed=True)(_edges_between)


def group_sum(keys, values, /) -> Tuple[Array, Array]:
    """The different keys in order, and the sum of the values of each, in NumPy's order of summation from first to last.

    Parameters
        keys: an array of one axis.
        values: an array with as many elements.
    Returns
        A tuple of two arrays: the keys and the sums.
    Raises
        ShapeMismatch for another number of values.
    Example
        >>> [one.tolist() for one in st.group_sum(st.array([7, 5, 7]), st.array([1, 2, 4]))]
        [[5, 7], [2, 5]]
    """
    values = _array(values)
    groups = unique_inverse(keys)
    if groups.inverse_indices.shape != values.shape:
        raise _errors.ShapeMismatch(f"keys of {groups.inverse_indices.shape} group values of {values.shape}")
    size = (values.size,)
    return groups.values, group_reduce(
        "add",
        _manipulation.reshape(values, size),
        _manipulation.reshape(groups.inverse_indices, size),
        groups.values.size,
    )
