"""Elements in order: sorts, elements by rank, searches and the greatest of a row."""

import functools
import math
from typing import List, Optional, Tuple

import numpy as np

from stride import _dtypes, _errors, _inference, _manipulation, _routines
from stride._array import Array, array_of, node_of, wrap
from stride._graph import INLINE_BYTES, Prepared, record_several
from stride._routines import _array, _prepared, _record, prepared_with
from stride.v1 import array_pb2, operation_pb2 as pb

__all__ = ["argsort", "searchsorted", "sort", "top_k"]

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
        x1 = _routines.take(x1, sorter)
    nodes = (x1._node, node_of(x2, x1.session))
    prepared = _prepared("search", ("sorted", "values"), right=side == "right")
    return _record(prepared, nodes[1].shape, _dtypes.int64, nodes, picks=True)


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
