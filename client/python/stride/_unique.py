"""Distinct elements of an array, and membership in another."""

from typing import NamedTuple, Optional

import numpy as np

from stride import _assembly, _dtypes, _elementwise, _inference, _manipulation, _ordering, _routines, _running
from stride._array import _SCALARS, Array, array_of
from stride._numbers import Number
from stride._routines import _array, gather, scatter, take_masked

__all__ = ["isin", "unique_all", "unique_counts", "unique_inverse", "unique_values"]


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
    flat = _assembly.flat(x)
    order = None if values_only else _ordering.argsort(flat)
    ordered = _ordering.sort(flat) if values_only else _routines.take(flat, order)
    if not x.size:
        empty = _creation.zeros((0,), dtype=_dtypes.int64)
        return UniqueAll(flat, empty, _manipulation.reshape(empty, x.shape), empty)
    differs = ordered[1:] != ordered[:-1]
    if equal_nan and ordered.dtype.kind not in "biu":
        differs = _elementwise.logical_and(
            differs, _elementwise.logical_not(_elementwise.isnan(ordered[:-1]))
        )  # they are last
    first = _assembly.concat([_creation.ones((1,), dtype=_dtypes.bool), differs])
    values = take_masked(ordered, first, 0)
    if values_only:
        return values
    begins = _routines.nonzero(first)[0]
    counts = _assembly.concat([begins[1:], _creation.full((1,), x.size)]) - begins
    inverse = _creation.zeros((x.size,), dtype=_dtypes.int64)
    scatter(inverse, [order], _running.cumulative_sum(first) - 1, 0)
    return UniqueAll(values, _routines.take(order, begins), _manipulation.reshape(inverse, x.shape), counts)


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
    ordered = _ordering.sort(flat)
    places = _elementwise.minimum(_ordering.searchsorted(ordered, values), flat.size - 1)
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
