"""Order and sets: partitions, sorts by several keys, and arrays as sets, as NumPy's functions of these names do."""

from typing import Any, Optional, Tuple

import numpy as np

from stride import (
    _arguments, _casts, _creation, _dtypes, _elementwise, _inference, _manipulation, _ordering, _routines, _running,
    _unique,
)
from stride._array import Array, array_of, host_array
from stride._assembly import concat
from stride._manipulation import ravel, reshape
from stride._ordering import argsort, sort
from stride._routines import take, take_masked

__all__ = [
    "argpartition",
    "intersect1d",
    "lexsort",
    "partition",
    "setdiff1d",
    "setxor1d",
    "sort_complex",
    "union1d",
    "unique",
]


# --- order ---


def _partition(array: Array, kth: Any, axis: Optional[int], kind: str, order: Any, indices: bool) -> Array:
    _arguments.refuse_fields(order)
    if kind != "introselect":
        refused = ValueError if isinstance(kind, str) else TypeError
        raise refused(f"select kind must be 'introselect' (got {kind!r})")
    places = host_array(kth)
    if places.dtype.kind not in "iu":
        raise TypeError("Partition index must be integer")
    if axis is None:
        array, axis = ravel(array), 0
    axis = _inference.normal_axis(axis, array.ndim)
    extent = array.shape[axis]
    # NumPy checks no rank where there is no element.
    kth = places.reshape(-1).tolist() if array.size else []
    for one in kth:
        if not -extent <= one < extent:
            raise ValueError(f"kth(={one}) out of bounds ({extent})")
    if not kth:
        return argsort(array, axis) if indices else _casts.copy(array)
    return _ordering.partitioned(array, kth, axis, indices)


def partition(a: Any, kth: Any, axis: Optional[int] = -1, kind: str = "introselect", order: Any = None) -> Array:
    """An array whose elements at `kth` are those of the sorted order, with no greater ones before and no
    smaller ones after.

    Parameters
        a: an array.
        kth: a place or several.
        axis: the axis; None flattens `a` first.
        kind, order: introselect, and None.
    Returns
        An array of `a`'s type.
    Raises
        ValueError for a place outside and another kind; AxisError for an axis that `a` lacks.
    Example
        >>> int(st.partition(st.array([3, 1, 2]), 1)[1])
        2
    """
    return _partition(array_of(a), kth, axis, kind, order, False)


def argpartition(a: Any, kth: Any, axis: Optional[int] = -1, kind: str = "introselect", order: Any = None) -> Array:
    """The places of the elements in the order that `partition` gives them.

    Parameters
        a: an array.
        kth: a place or several.
        axis: the axis; None flattens `a` first.
        kind: introselect, and None.
        order: introselect, and None.
    Returns
        An array of int64 of `a`'s shape.
    Raises
        ValueError for a place outside and another kind; AxisError for an axis that `a` lacks.
    Example
        >>> int(st.argpartition(st.array([3, 1, 2]), 0)[0])
        1
    """
    return _partition(array_of(a), kth, axis, kind, order, True)


def lexsort(keys: Any, axis: int = -1) -> Array:
    """The places of the elements in an order by several keys, of which the last counts first.

    Parameters
        keys: a sequence of arrays of one shape, or an array whose first axis they are along.
        axis: the axis.
    Returns
        An array of int64.
    Raises
        TypeError for no keys; ValueError for keys of different shapes; AxisError for an axis that they lack.
    Example
        >>> st.lexsort((st.array([2, 1, 0]), st.array([1, 0, 1]))).tolist()
        [1, 2, 0]
    """
    arrays = _arguments.arrays(*keys)
    if not arrays:
        raise TypeError("need sequence of keys with len > 0 in lexsort")
    if any(one.shape != arrays[0].shape for one in arrays):
        raise ValueError("all keys need to be the same shape")
    if not arrays[0].ndim:
        return _creation.full_in(arrays[0].session, (), 0, _dtypes.int64)
    axis = _inference.normal_axis(axis, arrays[0].ndim)
    most = _ordering.MOST_KEYS
    order: Optional[Array] = None
    # The keys that count last come first; each later group of them keeps the order of what is equal in it.
    for begin in range(0, len(arrays), most):
        keys = arrays[begin:begin + most][::-1]
        if order is None:
            order = _ordering.ordered_by(keys, axis)
            continue
        keys = [_routines.take_along_axis(one, order, axis) for one in keys]
        order = _routines.take_along_axis(order, _ordering.ordered_by(keys, axis), axis)
    assert order is not None
    return order


def sort_complex(a: Any) -> Array:
    """All numbers as complex ones, in order of their real parts, then of their imaginary parts, along the last axis.

    Parameters
        a: an array, or what becomes one.
    Returns
        An array of complex numbers of `a`'s shape.
    Example
        >>> st.sort_complex([2, 1]).tolist()
        [(1+0j), (2+0j)]
    """
    array = sort(array_of(a))
    if array.dtype.kind == "c":
        return array
    return array.astype(_dtypes.complex64 if array.dtype.char in "bhBH" else _dtypes.complex128)


# --- sets ---


def unique(
    ar: Any,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: Optional[int] = None,
    *,
    equal_nan: bool = True,
    sorted: bool = True,  # noqa: A002, NumPy's name
):
    """The different elements in rising order, or the different slices along an axis; how many there are is read.

    Parameters
        ar: an array.
        return_index: whether the places of their first occurrences are returned as well.
        return_inverse: whether the places among them of all elements are.
        return_counts: whether it is how often each occurs.
        axis: the axis; None takes single elements.
        equal_nan: whether NaN equals NaN.
        sorted: changes nothing: they always are.
    Returns
        An array, or a tuple of those asked for.
    Raises
        AxisError for an axis that `ar` lacks.
    Example
        >>> st.unique(st.array([3, 1, 3])).tolist()
        [1, 3]
    """
    array = array_of(ar)
    asked = (return_index, return_inverse, return_counts)
    if axis is not None and (array.ndim != 1 or not _inference.normal_axis(axis, 1) == 0):
        return _unique_slices(array, _inference.normal_axis(axis, array.ndim), asked)
    if not any(asked):
        values = _unique.unique(array, values_only=True, equal_nan=equal_nan)
        return values.values if isinstance(values, _unique.UniqueAll) else values
    found = _unique.unique(array, equal_nan=equal_nan)
    parts = (found.indices, found.inverse_indices, found.counts)
    return (found.values, *(part for part, wanted in zip(parts, asked) if wanted))


def _unique_slices(array: Array, axis: int, asked: Tuple[bool, ...]):
    """Slices are sorted by their elements, first ones first, and compared with those before them."""
    rows = _manipulation.moveaxis(array, axis, 0)
    count = rows.shape[0]
    flat = reshape(rows, (count, int(np.prod(rows.shape[1:], dtype=np.int64))))
    width = flat.shape[1]
    if not count:
        order = _creation.zeros((0,), _dtypes.int64)
        first = _creation.zeros((0,), _dtypes.bool)
    elif not width:
        order = _creation.arange(count)
        first = order == 0
    else:
        order = lexsort([flat[:, i] for i in range(width - 1, -1, -1)])
        ordered = take(flat, order, axis=0)
        differs = _any(ordered[1:] != ordered[:-1])
        first = concat([_creation.ones((1,), _dtypes.bool), differs])
    places = take_masked(order, first, 0)
    results = [_manipulation.moveaxis(take(rows, places, axis=0), 0, axis)]
    if asked[0]:
        results.append(places)
    if asked[1]:
        inverse = _creation.zeros((count,), _dtypes.int64)
        if count:
            _routines.scatter(inverse, [order], _running.cumulative_sum(first) - 1, 0)
        results.append(inverse)
    if asked[2]:
        begins = _routines.nonzero(first)[0]
        results.append(concat([begins[1:], _creation.full((1,), count)]) - begins if count else begins)
    return results[0] if len(results) == 1 else tuple(results)


def _any(x: Array) -> Array:
    from stride import _reductions

    return _reductions.any(x, axis=1)


def _as_set(x: Array, assume_unique: bool) -> Array:
    return ravel(x) if assume_unique else unique(x)


def intersect1d(ar1: Any, ar2: Any, assume_unique: bool = False, return_indices: bool = False):
    """The different elements that two arrays have in common, in rising order; how many there are is read.

    Parameters
        ar1, ar2: arrays.
        assume_unique: whether no array has an element twice.
        return_indices: whether the places of their first occurrences in both are returned as well.
    Returns
        An array, or a tuple of three.
    Example
        >>> st.intersect1d([1, 3, 4, 3], [3, 1, 2]).tolist()
        [1, 3]
    """
    first, second = _arguments.arrays(ar1, ar2)
    place1 = place2 = None
    if assume_unique:
        first, second = ravel(first), ravel(second)
    elif return_indices:
        first, place1 = unique(first, return_index=True)
        second, place2 = unique(second, return_index=True)
    else:
        # One of them need not be unique: it is searched.
        first, kind = unique(first), _inference.promote(first.dtype, second.dtype)
        return take_masked(first, _unique.isin(first, second), 0).astype(kind, copy=False)
    both = concat([first, second])
    order = argsort(both)
    ordered = take(both, order)
    twice = ordered[1:] == ordered[:-1]
    values = take_masked(ordered[:-1], twice, 0)
    if not return_indices:
        return values
    in_first = take_masked(order[:-1], twice, 0)
    in_second = take_masked(order[1:], twice, 0) - first.size
    if place1 is not None and place2 is not None:
        in_first, in_second = take(place1, in_first), take(place2, in_second)
    return values, in_first, in_second


def union1d(ar1: Any, ar2: Any) -> Array:
    """The different elements of two arrays together, in rising order; how many there are is read.

    Parameters
        ar1: an array, or what becomes one.
        ar2: another.
    Returns
        An array of one axis.
    Example
        >>> st.union1d([1, 3], [2, 3]).tolist()
        [1, 2, 3]
    """
    return unique(concat([ravel(one) for one in _arguments.arrays(ar1, ar2)]))


def setdiff1d(ar1: Any, ar2: Any, assume_unique: bool = False) -> Array:
    """The different elements of one array that another does not have; how many there are is read.

    Parameters
        ar1: an array, or what becomes one.
        ar2: another.
        assume_unique: whether both have no element twice.
    Returns
        An array of one axis, in rising order unless `assume_unique`.
    Example
        >>> st.setdiff1d([1, 2, 3, 2], [2]).tolist()
        [1, 3]
    """
    first, second = _arguments.arrays(ar1, ar2)
    first = _as_set(first, assume_unique)
    return take_masked(first, _unique.isin(first, second, invert=True), 0)


def setxor1d(ar1: Any, ar2: Any, assume_unique: bool = False) -> Array:
    """The different elements that one of two arrays has and the other does not, in rising order; how many there are is
    read.

    Parameters
        ar1: an array, or what becomes one.
        ar2: another.
        assume_unique: whether both have no element twice.
    Returns
        An array of one axis.
    Example
        >>> st.setxor1d([1, 2, 3], [3, 4]).tolist()
        [1, 2, 4]
    """
    both = concat([_as_set(one, assume_unique) for one in _arguments.arrays(ar1, ar2)])
    if not both.size:
        return both
    ordered = sort(both)
    true = _creation.ones((1,), _dtypes.bool)
    edges = concat([true, ordered[1:] != ordered[:-1], true])
    return take_masked(ordered, _elementwise.logical_and(edges[1:], edges[:-1]), 0)
