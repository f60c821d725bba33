"""Arrays put together and taken apart along axes, as NumPy's functions of these names do."""

import operator
from typing import Any, List, Optional, Tuple, Union

import numpy as np

from stride import _arguments, _assembly, _casts, _creation, _inference, _manipulation, _routines
from stride._array import Array, array_of, host_array
from stride._assembly import concat
from stride._manipulation import broadcast_to, reshape

__all__ = [
    "append",
    "array_split",
    "atleast_1d",
    "atleast_2d",
    "atleast_3d",
    "block",
    "column_stack",
    "delete",
    "dsplit",
    "dstack",
    "hsplit",
    "hstack",
    "insert",
    "resize",
    "row_stack",
    "split",
    "trim_zeros",
    "vsplit",
    "vstack",
]


# --- axes in front and at the end ---


def _each(function, given):
    results = tuple(function(one) for one in _arguments.arrays(*given))
    return results[0] if len(results) == 1 else results


def atleast_1d(*arys: Any):
    """Arrays of one axis or more: those without axes get one.

    Parameters
        arys: arrays or numbers.
    Returns
        An array, or a tuple of several.
    Raises
        DataTypeMismatch for elements that the service does not have.
    Example
        >>> st.atleast_1d(3).shape
        (1,)
    """
    return _each(lambda x: x if x.ndim else reshape(x, (1,)), arys)


def atleast_2d(*arys: Any):
    """Arrays of two axes or more; new axes come first.

    Parameters
        arys: arrays or numbers.
    Returns
        An array, or a tuple of several.
    Raises
        DataTypeMismatch for elements that the service does not have.
    Example
        >>> st.atleast_2d(st.arange(3)).shape
        (1, 3)
    """
    return _each(_with_two_axes, arys)


def _with_two_axes(x: Array) -> Array:
    return x if x.ndim > 1 else reshape(x, (1, x.size))


def atleast_3d(*arys: Any):
    """Arrays of three axes or more: (N,) becomes (1, N, 1), and (M, N) becomes (M, N, 1).

    Parameters
        arys: arrays or numbers.
    Returns
        An array, or a tuple of several.
    Raises
        DataTypeMismatch for elements that the service does not have.
    Example
        >>> st.atleast_3d(st.arange(3)).shape
        (1, 3, 1)
    """
    return _each(_with_three_axes, arys)


def _with_three_axes(x: Array) -> Array:
    if x.ndim > 2:
        return x
    return reshape(x, (*x.shape, 1) if x.ndim == 2 else (1, x.size, 1))


# --- together ---


def _sequence(tup: Any) -> tuple:
    """The arrays to stack: a sequence of arrays, or the slices of one."""
    if not isinstance(tup, (list, tuple, Array, np.ndarray)):
        if not hasattr(tup, "__getitem__"):
            raise TypeError('arrays to stack must be passed as a "sequence" type such as list or tuple.')
        tup = list(tup)
    return _arguments.arrays(*tup)


def vstack(tup: Any, *, dtype=None, casting: str = "same_kind") -> Array:
    """Arrays below each other, along the first axis; ones of one axis are rows.

    Parameters
        tup: a sequence of arrays that agree on every other axis.
        dtype: the result's type, by default the one that they have together.
        casting: which casts to `dtype` or `out` are made.
    Returns
        An array of two axes or more.
    Raises
        ValueError for no arrays; ShapeMismatch where they do not fit.
    Example
        >>> st.vstack([st.arange(2), st.ones(2, int)]).tolist()
        [[0, 1], [1, 1]]
    """
    return concat([_with_two_axes(one) for one in _sequence(tup)], 0, dtype=dtype, casting=casting)


row_stack = vstack


def hstack(tup: Any, *, dtype=None, casting: str = "same_kind") -> Array:
    """Joins arrays along the second axis, or along the first if they have one axis.

    Parameters
        tup: a sequence of arrays that agree on every other axis.
        dtype: the result's type, by default the one that they have together.
        casting: which casts to `dtype` or `out` are made.
    Returns
        An array of two axes or more.
    Raises
        ValueError for no arrays; ShapeMismatch where they do not fit.
    Example
        >>> st.hstack([st.arange(2), st.ones(2, int)]).tolist()
        [0, 1, 1, 1]
    """
    parts = [one if one.ndim else reshape(one, (1,)) for one in _sequence(tup)]
    return concat(parts, 0 if parts and parts[0].ndim == 1 else 1, dtype=dtype, casting=casting)


def dstack(tup: Any) -> Array:
    """Arrays along the third axis, after `atleast_3d`.

    Parameters
        tup: a sequence of arrays that agree on every other axis.
    Returns
        An array of two axes or more.
    Raises
        ValueError for no arrays; ShapeMismatch where they do not fit.
    Example
        >>> st.dstack([st.arange(2), st.ones(2, int)]).tolist()
        [[[0, 1], [1, 1]]]
    """
    return concat([_with_three_axes(one) for one in _sequence(tup)], 2)


def column_stack(tup: Any) -> Array:
    """Arrays of one axis as columns of a matrix; ones of two axes as they are.

    Parameters
        tup: a sequence of arrays that agree on every other axis.
    Returns
        An array of two axes or more.
    Raises
        ValueError for no arrays; ShapeMismatch where they do not fit.
    Example
        >>> st.column_stack([st.arange(2), st.ones(2, int)]).tolist()
        [[0, 1], [1, 1]]
    """
    return concat([one if one.ndim > 1 else reshape(one, (one.size, 1)) for one in _sequence(tup)], 1)


def block(arrays: Any) -> Array:
    """An array of nested lists of blocks: the innermost are put together along the last axis, the lists around them
    along the one before, and so on.

    Parameters
        arrays: nested lists, all of one depth, of arrays or numbers.
    Returns
        An array.
    Raises
        ValueError for lists of different depths and for empty ones; TypeError for tuples; ShapeMismatch.
    Example
        >>> st.block([[st.eye(1), st.zeros((1, 1))], [st.zeros((1, 1)), st.eye(1)]]).tolist()
        [[1.0, 0.0], [0.0, 1.0]]
    """
    depth = _depth(arrays)
    leaves: List[Any] = []
    _collect(arrays, leaves)
    found = _arguments.arrays(*leaves)
    rank = max([depth, *(one.ndim for one in found)])
    return _blocks(arrays, depth, rank, iter(found))


def _depth(arrays: Any) -> int:
    if isinstance(arrays, tuple):
        raise TypeError("blocks are arranged by lists, not by tuples")
    if not isinstance(arrays, list):
        return 0
    if not arrays:
        raise ValueError("a list of blocks is empty")
    depths = {_depth(one) for one in arrays}
    if len(depths) > 1:
        raise ValueError(f"lists of blocks have different depths: {sorted(depths)}")
    return depths.pop() + 1


def _collect(arrays: Any, leaves: List[Any]) -> None:
    if isinstance(arrays, list):
        for one in arrays:
            _collect(one, leaves)
    else:
        leaves.append(arrays)


def _blocks(arrays: Any, depth: int, rank: int, found) -> Array:
    if not isinstance(arrays, list):
        one = next(found)
        return _casts.copy(reshape(one, (1,) * (rank - one.ndim) + one.shape))
    return concat([_blocks(one, depth - 1, rank, found) for one in arrays], -depth)


def append(arr: Any, values: Any, axis: Optional[int] = None) -> Array:
    """A copy with values at the end of an axis.

    Parameters
        arr: an array.
        values: an array that agrees with it on every other axis.
        axis: the axis; None flattens both.
    Returns
        An array of the type that both have together.
    Raises
        ShapeMismatch where they do not fit; AxisError for an axis that `arr` lacks.
    Example
        >>> st.append(st.arange(2), [5, 6]).tolist()
        [0, 1, 5, 6]
    """
    return concat(_arguments.arrays(arr, values), axis)


def _where_along(obj: Any, extent: int, what: str) -> Any:
    """An index along one axis as a slice, a Python integer or an array of the host; arrays of the service are read."""
    if isinstance(obj, slice):
        return obj
    places = host_array(obj)
    if places.dtype.kind == "b":
        if places.shape != (extent,) and what == "delete":
            raise ValueError(f"bools that {what} takes have one axis of {extent} elements, not {places.shape}")
        return np.flatnonzero(places)
    if not places.size and not isinstance(obj, (Array, np.ndarray)):  # an empty list has no type of its own
        places = places.astype(np.int64)
    if places.dtype.kind not in "iu":
        raise IndexError("arrays used as indices must be of integer (or boolean) type")
    return places


def _along(arr: Any, axis: Optional[int]) -> Tuple[Array, int]:
    array = array_of(arr)
    if axis is None:
        return (array if array.ndim == 1 else reshape(array, (array.size,))), 0
    return array, _inference.normal_axis(axis, array.ndim)


def delete(arr: Any, obj: Any, axis: Optional[int] = None) -> Array:
    """A copy without some of the slices along an axis.

    Parameters
        arr: an array.
        obj: which ones: a slice, an integer, integers, or bools for the whole axis; an array of the service is read.
        axis: the axis; None flattens `arr` first.
    Returns
        An array of `arr`'s type.
    Raises
        IndexError for a place outside; ValueError for bools that do not fit; AxisError for an axis that `arr` lacks.
    Example
        >>> st.delete(st.arange(5), [1, 3]).tolist()
        [0, 2, 4]
    """
    array, axis = _along(arr, axis)
    extent = array.shape[axis]
    places = _where_along(obj, extent, "delete")
    keep = np.ones(extent, bool)
    if isinstance(places, slice):
        keep[places] = False
    else:
        _check_places(places, extent, axis)
        keep[places] = False
    return _runs(array, keep, axis)


def _check_places(places: np.ndarray, extent: int, axis: int, end: int = 0) -> None:
    flat = places.reshape(-1)
    wrong = flat[(flat < -extent) | (flat >= extent + end)]
    if wrong.size:
        raise IndexError(f"index {int(wrong[0])} is out of bounds for axis {axis} with size {extent}")


def _runs(array: Array, keep: np.ndarray, axis: int) -> Array:
    """The kept slices: few runs of them as views put together, many by their places."""
    edges = np.flatnonzero(np.diff(np.concatenate(([False], keep, [False])).astype(np.int8)))
    before = (slice(None),) * axis
    if len(edges) > 16:
        return _routines.take(array, np.flatnonzero(keep), axis=axis)
    parts = [array[(*before, slice(int(begin), int(end)))] for begin, end in zip(edges[::2], edges[1::2])]
    return concat(parts or [array[(*before, slice(0, 0))]], axis)


def insert(arr: Any, obj: Any, values: Any, axis: Optional[int] = None) -> Array:
    """A copy with values before some of the slices along an axis.

    Parameters
        arr: an array.
        obj: before which: a slice, an integer, integers, or bools; an array of the service is read.
        values: what goes in, cast to `arr`'s type and broadcast.
        axis: the axis; None flattens `arr` first.
    Returns
        An array of `arr`'s type.
    Raises
        IndexError for a place outside; ShapeMismatch for values that do not fit; AxisError for an axis that `arr`
        lacks.
    Example
        >>> st.insert(st.arange(3), 1, 7).tolist()
        [0, 7, 1, 2]
    """
    from stride import _indexing

    array, axis = _along(arr, axis)
    extent = array.shape[axis]
    places = np.arange(extent)[obj] if isinstance(obj, slice) else _where_along(obj, extent, "insert")
    if places.ndim > 1:
        raise ValueError("index array argument obj to insert must be one dimensional or scalar")
    _check_places(places, extent, axis, 1)
    value = _indexing.converted(values if isinstance(values, Array) else host_array(values), array)
    before = array.shape[:axis]
    if places.size == 1:
        if value.ndim < array.ndim:
            value = reshape(value, (1,) * (array.ndim - value.ndim) + value.shape)
        if not places.ndim:  # one place takes values as `arr[..., place, ...] = values` does
            value = _manipulation.moveaxis(value, 0, axis)
        place = int(places.reshape(()))
        return _insert_at(array, place + extent if place < 0 else place, value, axis)
    places = places.reshape(-1).astype(np.int64)
    places[places < 0] += extent
    count = len(places)
    order = np.argsort(places, kind="stable")
    places[order] += np.arange(count)
    target = (*before, count, *array.shape[axis + 1:])
    value = broadcast_to(_fitted(value, target), target)
    # Where each slice of the result comes from: of the array, or after its end of the values.
    source = np.zeros(extent + count, np.int64)
    old = np.ones(extent + count, bool)
    old[places] = False
    source[old] = np.arange(extent)
    source[places] = extent + np.arange(count)
    return _routines.take(concat([array, value], axis), source, axis=axis)


def _fitted(value: Array, shape: tuple) -> Array:
    trimmed = value.shape
    while len(trimmed) > len(shape) and trimmed[0] == 1:
        trimmed = trimmed[1:]
    return value if trimmed == value.shape else reshape(value, trimmed)


def _insert_at(array: Array, place: int, value: Array, axis: int) -> Array:
    """One run of slices; as many as the value has along the axis."""
    value = _fitted(value, array.shape)
    count = value.shape[axis]
    target = (*array.shape[:axis], count, *array.shape[axis + 1:])
    before = (slice(None),) * axis
    parts = [array[(*before, slice(0, place))], broadcast_to(value, target), array[(*before, slice(place, None))]]
    return concat(parts, axis)


def resize(a: Any, new_shape: Any) -> Array:
    """The elements in C order in another shape, from the first again where there are too few.

    Parameters
        a: an array.
        new_shape: an integer or a sequence of them.
    Returns
        An array of `a`'s type.
    Raises
        ValueError for a negative extent.
    Example
        >>> st.resize(st.arange(3), (2, 2)).tolist()
        [[0, 1], [2, 0]]
    """
    array = array_of(a)
    shape = _creation._shape(new_shape)
    count = int(np.prod(shape, dtype=np.int64)) if shape else 1
    if not count or not array.size:
        return _creation.zeros(shape, array.dtype)
    flat = reshape(array, (array.size,))
    times = -(-count // array.size)
    return reshape(_casts.copy(_assembly.tile(flat, times)[:count]), shape)


# --- apart ---

Sections = Union[int, Any]


def _split_at(array: Array, sections: Any, axis: int, even: bool) -> List[Array]:
    axis = _inference.normal_axis(axis, array.ndim)
    extent = array.shape[axis]
    if np.ndim(sections):
        places = [operator.index(one) for one in host_array(sections).tolist()]
        edges = [0, *places, extent]
    else:
        number = operator.index(sections)
        if even and not number:
            raise ZeroDivisionError("an array is not split into 0 parts")
        if number <= 0:
            raise ValueError("number sections must be larger than 0.")
        if even and extent % number:
            raise ValueError("array split does not result in an equal division")
        each, more = divmod(extent, number)
        edges = [0]
        for i in range(number):
            edges.append(edges[-1] + each + (i < more))
    before = (slice(None),) * axis
    return [array[(*before, slice(begin, end))] for begin, end in zip(edges[:-1], edges[1:])]


def array_split(ary: Any, indices_or_sections: Sections, axis: int = 0) -> List[Array]:
    """Views of the parts of an array along an axis; the first ones are longer where the axis does not divide.

    Parameters
        ary: an array.
        indices_or_sections: how many parts, or the places at which the later ones begin.
        axis: the axis.
    Returns
        A list of arrays.
    Raises
        ValueError for no parts, ZeroDivisionError from `split`; AxisError for an axis that `ary` lacks.
    Example
        >>> [one.tolist() for one in st.array_split(st.arange(5), 2)]
        [[0, 1, 2], [3, 4]]
    """
    return _split_at(array_of(ary), indices_or_sections, axis, False)


def split(ary: Any, indices_or_sections: Sections, axis: int = 0) -> List[Array]:
    """The parts of an array along an axis, as `array_split` gives them; a number of parts divides the axis.

    Parameters
        ary: an array.
        indices_or_sections: how many parts, or the places at which the later ones begin.
        axis: the axis.
    Returns
        A list of arrays.
    Raises
        ValueError where the axis does not divide into equal parts.
    Example
        >>> [one.tolist() for one in st.split(st.arange(4), 2)]
        [[0, 1], [2, 3]]
    """
    return _split_at(array_of(ary), indices_or_sections, axis, True)


def hsplit(ary: Any, indices_or_sections: Sections) -> List[Array]:
    """Columns apart: `split` along the second axis, or the first of an array that has one.

    Parameters
        ary: an array of one axis or more.
        indices_or_sections: how many parts, or the places at which the later ones begin.
    Returns
        A list of arrays.
    Raises
        ValueError for parts that are not equal, and for an array without axes.
    Example
        >>> [one.tolist() for one in st.hsplit(st.array([[1, 2], [3, 4]]), 2)]
        [[[1], [3]], [[2], [4]]]
    """
    array = array_of(ary)
    if not array.ndim:
        raise ValueError("hsplit only works on arrays of 1 or more dimensions")
    return _split_at(array, indices_or_sections, 1 if array.ndim > 1 else 0, True)


def vsplit(ary: Any, indices_or_sections: Sections) -> List[Array]:
    """Rows apart: `split` along the first axis of an array of two or more.

    Parameters
        ary: an array of two axes or more.
        indices_or_sections: how many parts, or the places at which the later ones begin.
    Returns
        A list of arrays.
    Raises
        ValueError for parts that are not equal, and for fewer axes.
    Example
        >>> [one.tolist() for one in st.vsplit(st.array([[1, 2], [3, 4]]), 2)]
        [[[1, 2]], [[3, 4]]]
    """
    array = array_of(ary)
    if array.ndim < 2:
        raise ValueError("vsplit only works on arrays of 2 or more dimensions")
    return _split_at(array, indices_or_sections, 0, True)


def dsplit(ary: Any, indices_or_sections: Sections) -> List[Array]:
    """`split` along the third axis of an array of three or more.

    Parameters
        ary: an array of three axes or more.
        indices_or_sections: how many parts, or the places at which the later ones begin.
    Returns
        A list of arrays.
    Raises
        ValueError for parts that are not equal, and for fewer axes.
    Example
        >>> [one.shape for one in st.dsplit(st.zeros((1, 1, 4)), 2)]
        [(1, 1, 2), (1, 1, 2)]
    """
    array = array_of(ary)
    if array.ndim < 3:
        raise ValueError("dsplit only works on arrays of 3 or more dimensions")
    return _split_at(array, indices_or_sections, 2, True)


def trim_zeros(filt: Any, trim: str = "fb", axis: Any = None) -> Array:
    """Without the zeros at the ends of axes; where they begin is read: one round trip.

    Parameters
        filt: an array.
        trim: f for the front, b for the back, or both.
        axis: which axes, None for all.
    Returns
        A view.
    Raises
        ValueError for another `trim`; AxisError for an axis that `filt` lacks.
    Example
        >>> st.trim_zeros(st.array([0, 0, 3, 0])).tolist()
        [3]
    """
    from stride import _reductions

    array = array_of(filt)
    ends = trim.lower()
    if ends not in ("fb", "bf", "f", "b"):
        raise ValueError(f"unexpected character(s) in `trim`: {trim!r}")
    axes = _inference.normal_axes(axis, array.ndim)
    if not axes:
        return array
    others = [tuple(i for i in range(array.ndim) if i != one) for one in axes]
    is_set = [_reductions.any(array != 0, axis=rest) if rest else array != 0 for rest in others]
    keys: List[slice] = [slice(None)] * array.ndim
    for one, found in zip(axes, is_set):
        places = np.flatnonzero(found._read())
        if not places.size:
            keys[one] = slice(0, 0)
            continue
        keys[one] = slice(int(places[0]) if "f" in ends else None, int(places[-1]) + 1 if "b" in ends else None)
    return array[tuple(keys)]

