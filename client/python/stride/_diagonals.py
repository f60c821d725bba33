"""Diagonals and triangles of matrices, and their indices."""

import math
import operator
from typing import Any, Callable, Optional, Tuple

import numpy as np

from stride import _assembly, _creation, _errors, _inference, _manipulation, _routines
from stride._array import Array, array_of, host_array
from stride._creation import arange, zeros
from stride._manipulation import reshape
from stride._views import View

__all__ = [
    "diag", "diag_indices", "diag_indices_from", "diagflat", "diagonal", "fill_diagonal", "mask_indices", "trace",
    "tril_indices", "tril_indices_from", "triu_indices", "triu_indices_from",
]


def _two_axes(a: Array, axis1: int, axis2: int) -> Array:
    axes = [_inference.normal_axis(one, a.ndim) for one in (axis1, axis2)] if a.ndim > 1 else []
    if len(axes) < 2:
        raise _errors.ShapeMismatch(
            f"diagonals are of arrays of two axes or more, not of {a.ndim}", reason="SHAPE_MISMATCH"
        )
    if axes[0] == axes[1]:
        raise ValueError("axis1 and axis2 cannot be the same")
    if axes == [a.ndim - 2, a.ndim - 1]:
        return a
    return _manipulation.moveaxis(a, tuple(axes), (-2, -1))


def diagonal(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Array:
    """The elements whose indices along two axes differ by `offset`, for reading.

    Parameters
        a: an array of two axes or more.
        offset: which diagonal; positive ones are above the main one.
        axis1, axis2: the axes.
    Returns
        An array without the two axes and with one more at the end.
    Raises
        ShapeMismatch for fewer axes; ValueError for equal ones; AxisError for ones that `a` lacks.
    Example
        >>> st.diagonal(st.array([[1, 2], [3, 4]])).tolist()
        [1, 4]
    """
    from stride import linalg

    return linalg.diagonal(_two_axes(array_of(a), axis1, axis2), offset=operator.index(offset))


def trace(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype=None, out=None) -> Array:
    """The sum of a diagonal.

    Parameters
        a: an array of two axes or more.
        offset: the number of the diagonal: 0 for the main one, above it positive.
        axis1: the axis of the rows.
        axis2: the axis of the columns.
        dtype: the element type of the result; by default the one that NumPy gives it.
        out: an array of the result's shape that takes it.
    Returns
        An array without the two axes.
    Raises
        AxisError for an axis that `a` lacks; ValueError where both axes are one.
    Example
        >>> int(st.trace(st.array([[1, 2], [3, 4]])))
        5
    """
    from stride import _reductions

    return _reductions.sum(diagonal(a, offset, axis1, axis2), axis=-1, dtype=dtype, out=out)


def diag(v: Any, k: int = 0) -> Array:
    """A matrix with a vector on a diagonal, or a matrix's diagonal.

    Parameters
        v: an array of one axis or two.
        k: which diagonal; positive ones are above the main one.
    Returns
        An array.
    Raises
        ValueError for another number of axes.
    Example
        >>> st.diag(st.array([1, 2])).tolist()
        [[1, 0], [0, 2]]
    """
    array, k = array_of(v), operator.index(k)
    if array.ndim == 2:
        return diagonal(array, k)
    if array.ndim != 1:
        raise ValueError("Input must be 1- or 2-d.")
    size = array.size + abs(k)
    if not array.size:
        return zeros((size, size), array.dtype)
    begin = k if k >= 0 else -k * size
    end = begin + (array.size - 1) * (size + 1) + 1
    place = View((("reshape", (size * size,)), ("slice", 0, begin, end, size + 1)))
    return _assembly.assembled(array.session, (size, size), array.dtype, [(array._node, place)], is_zeroed=True)


def diagflat(v: Any, k: int = 0) -> Array:
    """A matrix with all elements of an array, in C order, on a diagonal.

    Parameters
        v: an array, or what becomes one.
        k: the diagonal: 0 for the main one, above it positive, below it negative.
    Returns
        An array of two axes of `v`'s type.
    Example
        >>> st.diagflat([[1], [2]]).tolist()
        [[1, 0], [0, 2]]
    """
    array = array_of(v)
    return diag(reshape(array, (array.size,)), k)


def fill_diagonal(a: Any, val: Any, wrap: bool = False) -> None:
    """Writes the main diagonal of an array.

    Parameters
        a: the array that is changed, of two axes, or of more of one extent.
        val: a number, or values that are repeated along the diagonal.
        wrap: whether in a tall matrix the diagonal begins again after as many rows as there are columns.
    Returns
        None.
    Raises
        ValueError for fewer axes and for extents that differ.
    Example
        >>> x = st.zeros((2, 2))
        >>> st.fill_diagonal(x, 5)
        >>> x.tolist()
        [[5.0, 0.0], [0.0, 5.0]]
    """
    if isinstance(a, np.ndarray):
        np.fill_diagonal(a, host_array(val), wrap)
        return
    if a.ndim < 2:
        raise ValueError("array must be at least 2-d")
    end = a.size
    if a.ndim == 2:
        step = a.shape[1] + 1
        if not wrap:
            end = a.shape[1] * a.shape[1]
    else:
        if len(set(a.shape)) > 1:
            raise ValueError("All dimensions of input must be of equal length")
        step = 1 + sum(math.prod(a.shape[1 + i:]) for i in range(a.ndim - 1))
    places = np.arange(0, min(end, a.size), step)
    _routines.put(a, places, val)


def diag_indices(n: int, ndim: int = 2) -> Tuple[Array, ...]:
    """The places of the main diagonal of an array with `ndim` axes of `n` elements.

    Parameters
        n: the number of elements along each axis.
        ndim: the number of axes.
    Returns
        A tuple of `ndim` arrays of int64.
    Example
        >>> [one.tolist() for one in st.diag_indices(2)]
        [[0, 1], [0, 1]]
    """
    return (arange(n),) * ndim


def diag_indices_from(arr: Any) -> Tuple[Array, ...]:
    """The places of an array's main diagonal.

    Parameters
        arr: an array of two axes or more of one extent.
    Returns
        A tuple of arrays of int64, one for each axis.
    Raises
        ValueError for fewer axes and for extents that differ.
    Example
        >>> [one.tolist() for one in st.diag_indices_from(st.zeros((2, 2)))]
        [[0, 1], [0, 1]]
    """
    if np.ndim(arr) < 2:
        raise ValueError("input array must be at least 2-d")
    if len(set(arr.shape)) > 1:
        raise ValueError("All dimensions of input must be of equal length")
    return diag_indices(arr.shape[0], np.ndim(arr))


def _places_where(mask: np.ndarray) -> Tuple[Array, ...]:
    return tuple(array_of(one) for one in np.nonzero(mask))


def tril_indices(n: int, k: int = 0, m: Optional[int] = None) -> Tuple[Array, ...]:
    """The places at and below a diagonal of a matrix of n rows and m columns.

    Parameters
        n: the number of rows.
        k: the diagonal: 0 for the main one, above it positive, below it negative.
        m: the number of columns; None for `n`.
    Returns
        A tuple of two arrays of int64: rows and columns.
    Example
        >>> [one.tolist() for one in st.tril_indices(2)]
        [[0, 1, 1], [0, 0, 1]]
    """
    return _places_where(np.tri(n, m, k=k, dtype=bool))


def triu_indices(n: int, k: int = 0, m: Optional[int] = None) -> Tuple[Array, ...]:
    """The places at and above a diagonal of a matrix of n rows and m columns.

    Parameters
        n: the number of rows.
        k: the diagonal: 0 for the main one, above it positive, below it negative.
        m: the number of columns; None for `n`.
    Returns
        A tuple of two arrays of int64: rows and columns.
    Example
        >>> [one.tolist() for one in st.triu_indices(2)]
        [[0, 0, 1], [0, 1, 1]]
    """
    return _places_where(~np.tri(n, m, k=k - 1, dtype=bool))


def _matrix_shape(arr: Any) -> Tuple[int, int]:
    shape = np.shape(arr) if not isinstance(arr, Array) else arr.shape
    if len(shape) != 2:
        raise ValueError("input array must be 2-d")
    return shape  # type: ignore[return-value]


def tril_indices_from(arr: Any, k: int = 0) -> Tuple[Array, ...]:
    """The places at and below a diagonal of a matrix of an array's shape.

    Parameters
        arr: an array of two axes.
        k: the diagonal: 0 for the main one, above it positive, below it negative.
    Returns
        A tuple of two arrays of int64: rows and columns.
    Raises
        ValueError for another number of axes.
    Example
        >>> [one.tolist() for one in st.tril_indices_from(st.zeros((2, 2)), -1)]
        [[1], [0]]
    """
    rows, columns = _matrix_shape(arr)
    return tril_indices(rows, k, columns)


def triu_indices_from(arr: Any, k: int = 0) -> Tuple[Array, ...]:
    """The places at and above a diagonal of a matrix of an array's shape.

    Parameters
        arr: an array of two axes.
        k: the diagonal: 0 for the main one, above it positive, below it negative.
    Returns
        A tuple of two arrays of int64: rows and columns.
    Raises
        ValueError for another number of axes.
    Example
        >>> [one.tolist() for one in st.triu_indices_from(st.zeros((2, 2)), 1)]
        [[0], [1]]
    """
    rows, columns = _matrix_shape(arr)
    return triu_indices(rows, k, columns)


def mask_indices(n: int, mask_func: Callable, k: Any = 0) -> Tuple[Array, ...]:
    """The places that a function such as `triu` leaves of a matrix of ones: one round trip.

    Parameters
        n: the number of rows and of columns.
        mask_func: a function of a matrix and `k`.
        k: what the function gets as its second argument.
    Returns
        A tuple of two arrays of int64.
    Raises
        What the function raises.
    Example
        >>> [one.tolist() for one in st.mask_indices(2, st.triu)]
        [[0, 0, 1], [0, 1, 1]]
    """
    return _routines.nonzero(mask_func(_creation.ones((n, n), int), k) != 0)
