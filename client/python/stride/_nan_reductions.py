"""Reductions that skip NaN, each as one operation of the service. NumPy's warnings of all-NaN slices are
given for elements on the host; others would need a read."""

import math
from typing import Any, Optional

import numpy as np

from stride import (
    _arguments, _deviations, _dtypes, _elementwise, _float_errors, _inference, _manipulation, _reductions, _running,
)
from stride._array import Array, array_of
from stride._elementwise import isnan, where as choose

__all__ = [
    "nanargmax",
    "nanargmin",
    "nancumprod",
    "nancumsum",
    "nanmax",
    "nanmean",
    "nanmin",
    "nanprod",
    "nanstd",
    "nansum",
    "nanvar",
]


def _has_nan(a: Array) -> bool:
    return a.dtype.kind not in "biu"


def _replaced(a: Any, value: Any) -> Array:
    array = array_of(a)
    return choose(isnan(array), np.asarray(value, array.dtype)[()], array) if _has_nan(array) else array


_F = _reductions._F


def _skipping(function: int, array: Array, axis, keepdims: bool, kind: np.dtype, data_type=None, where=True,
              initial=None) -> Optional[Array]:
    """The reduction without NaN as one operation; None if the type has no NaN, or without axes."""
    axes = _inference.reduced_axes(axis, array.ndim)
    if not _has_nan(array) or not axes and array.ndim:
        return None
    return _reductions.reduce_by(
        function, array._node, axes, keepdims, kind, data_type, where, initial, skip_nan=True
    )


def _summed(function: int, array: Array, axis, dtype, out, keepdims: bool, initial, where) -> Optional[Array]:
    if dtype is None:
        is_wide = out is not None and np.can_cast(array.dtype, _arguments.one_out(out).dtype, "safe")
        kind = _arguments.one_out(out).dtype if is_wide else array.dtype
    else:
        kind = _dtypes.dtype_of(dtype)
    if not np.can_cast(array.dtype, kind, "same_kind"):
        return None
    return _skipping(function, array, axis, keepdims, kind, kind, where, initial)


def nansum(a: Any, axis: Any = None, dtype=None, out=None, keepdims: bool = False, initial=None, where=True) -> Array:
    """The sum along axes, ignoring NaN.

    Parameters
        a: array of any shape.
        axis: None for all, an integer, or a tuple of them.
        dtype: in which to sum; integers default to int64 or uint64, others to their own type.
        out: array of the result's shape that takes it.
        keepdims: whether the axes stay, with one element each.
        initial: a number to begin with.
        where: bools that broadcast with `a`; elements where it is false are left out.
    Returns
        An array of `dtype` without the axes.
    Raises
        AxisError for an axis that `a` lacks; ShapeMismatch for an `out` of another shape.
    Example
        >>> float(st.nansum(st.array([1.0, float("nan"), 2.0])))
        3.0
    """
    array = array_of(a)
    result = _summed(_F.FUNCTION_SUM, array, axis, dtype, out, keepdims, initial, where)
    if result is not None:
        return _arguments.give(result, out, "unsafe")
    return _reductions.sum(_replaced(array, 0), axis, dtype, out, keepdims, initial, where)


def nanprod(a: Any, axis: Any = None, dtype=None, out=None, keepdims: bool = False, initial=None, where=True) -> Array:
    """The product along axes, ignoring NaN.

    Parameters
        a: array of any shape.
        axis: None for all, an integer, or a tuple of them.
        dtype: in which to sum; integers default to int64 or uint64, others to their own type.
        out: array of the result's shape that takes it.
        keepdims: whether the axes stay, with one element each.
        initial: a number to begin with.
        where: bools that broadcast with `a`; elements where it is false are left out.
    Returns
        An array of `dtype` without the axes.
    Raises
        AxisError for an axis that `a` lacks; ShapeMismatch for an `out` of another shape.
    Example
        >>> float(st.nanprod(st.array([2.0, float("nan"), 3.0])))
        6.0
    """
    array = array_of(a)
    result = _summed(_F.FUNCTION_PROD, array, axis, dtype, out, keepdims, initial, where)
    if result is not None:
        return _arguments.give(result, out, "unsafe")
    return _reductions.prod(_replaced(array, 1), axis, dtype, out, keepdims, initial, where)


def nancumsum(a: Any, axis: Optional[int] = None, dtype=None, out=None) -> Array:
    """Running sums with NaN as 0.

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
        >>> st.nancumsum(st.array([1.0, float("nan"), 2.0])).tolist()
        [1.0, 1.0, 3.0]
    """
    return _running.cumsum(_replaced(a, 0), axis, dtype, out)


def nancumprod(a: Any, axis: Optional[int] = None, dtype=None, out=None) -> Array:
    """Running products with NaN as 1.

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
        >>> st.nancumprod(st.array([2.0, float("nan"), 3.0])).tolist()
        [2.0, 2.0, 6.0]
    """
    return _running.cumprod(_replaced(a, 1), axis, dtype, out)


def _extreme(a: Any, axis, out, keepdims: bool, initial, where, name: str) -> Array:
    array = array_of(a)
    plain = _reductions.min if name == "min" else _reductions.max
    if not _has_nan(array):
        return plain(array, axis, out, keepdims, initial, where)
    if where is not True and initial is None:
        raise ValueError(f"{name} has no identity, so that where= needs initial=")
    axes = _inference.reduced_axes(axis, array.ndim)
    if not axes and array.ndim:
        return plain(array, axis, out, keepdims, initial, where)
    if initial is None and any(array.shape[i] == 0 for i in axes):
        return plain(array, axis, out, keepdims)  # which raises, or has no element either
    function = _F.FUNCTION_MIN if name == "min" else _F.FUNCTION_MAX
    if initial is None:
        _float_errors.of_nan_slices(array, axes, "All-NaN slice encountered")
    result = _reductions.reduce_by(
        function, array._node, axes, keepdims, array.dtype, None, where, initial, skip_nan=True
    )
    return _arguments.give(result, out, "unsafe")


def nanmin(a: Any, axis: Any = None, out=None, keepdims: bool = False, initial=None, where=True) -> Array:
    """The least element along axes, ignoring NaN; NaN for an all-NaN slice.

    Parameters
        a: array of any shape.
        axis: None for all, an integer, or a tuple of them.
        out: array of the result's shape that takes it.
        keepdims: whether the axes stay, with one element each.
        initial: a number to compare with as well; needed for empty arrays and with `where`.
        where: bools that broadcast with `a`; elements where it is false are left out.
    Returns
        An array of `a`'s type without the axes.
    Raises
        AxisError for an axis that `a` lacks.
    Example
        >>> float(st.nanmin(st.array([3.0, float("nan"), 2.0])))
        2.0
    """
    return _extreme(a, axis, out, keepdims, initial, where, "min")


def nanmax(a: Any, axis: Any = None, out=None, keepdims: bool = False, initial=None, where=True) -> Array:
    """The greatest element along axes, ignoring NaN; NaN for an all-NaN slice.

    Parameters
        a: array of any shape.
        axis: None for all, an integer, or a tuple of them.
        out: array of the result's shape that takes it.
        keepdims: whether the axes stay, with one element each.
        initial: a number to compare with as well; needed for empty arrays and with `where`.
        where: bools that broadcast with `a`; elements where it is false are left out.
    Returns
        An array of `a`'s type without the axes.
    Raises
        AxisError for an axis that `a` lacks.
    Example
        >>> float(st.nanmax(st.array([3.0, float("nan"), 2.0])))
        3.0
    """
    return _extreme(a, axis, out, keepdims, initial, where, "max")


def _place(a: Any, axis, out, keepdims: bool, name: str) -> Array:
    array = array_of(a)
    plain = _reductions.argmin if name == "min" else _reductions.argmax
    if not _has_nan(array):
        return plain(array, axis, out, keepdims=keepdims)
    function = _F.FUNCTION_ARGMIN if name == "min" else _F.FUNCTION_ARGMAX
    # The service's index of an all-NaN slice is -1.
    result = _reductions._place(function, f"arg{name}", array, axis, keepdims, skip_nan=True)
    if not array.session._is_trace and bool(_reductions.any(result < 0)):
        raise ValueError("All-NaN slice encountered")
    return _arguments.give(result, out)


def nanargmin(a: Any, axis: Optional[int] = None, out=None, *, keepdims: bool = False) -> Array:
    """The index of the least element, ignoring NaN. Checks for all-NaN slices, which costs one round trip.

    Parameters
        a: array of any shape but an empty one.
        axis: None for a place among all elements in C order, or an integer.
        out: array of int64 of the result's shape that takes it.
        keepdims: whether the axis stays, with one element.
    Returns
        An array of int64.
    Raises
        ValueError for a slice with nothing but NaN, and for an empty one.
    Example
        >>> int(st.nanargmin(st.array([3.0, float("nan"), 2.0])))
        2
    """
    return _place(a, axis, out, keepdims, "min")


def nanargmax(a: Any, axis: Optional[int] = None, out=None, *, keepdims: bool = False) -> Array:
    """The index of the greatest element, ignoring NaN.

    Parameters
        a: array of any shape but an empty one.
        axis: None for a place among all elements in C order, or an integer.
        out: array of int64 of the result's shape that takes it.
        keepdims: whether the axis stays, with one element.
    Returns
        An array of int64.
    Raises
        ValueError for a slice with nothing but NaN, and for an empty one.
    Example
        >>> int(st.nanargmax(st.array([3.0, float("nan"), 2.0])))
        0
    """
    return _place(a, axis, out, keepdims, "max")


def _counted(array: Array, where: Any) -> Array:
    """Which elements count."""
    taken = ~isnan(array)
    return taken if where is True else taken & array_of(where, array.session)


def nanmean(a: Any, axis: Any = None, dtype=None, out=None, keepdims: bool = False, *, where=True) -> Array:
    """The mean along axes, ignoring NaN; NaN for an all-NaN slice.

    Parameters
        a: array of any shape.
        axis: None for all, an integer, or a tuple of them.
        dtype: in which to compute; integers default to float64.
        out: array of the result's shape that takes it.
        keepdims: whether the axes stay, with one element each.
        where: bools that broadcast with `a`; elements where it is false are left out.
    Returns
        An array of `dtype` without the axes; NaN where there is no element.
    Raises
        AxisError for an axis that `a` lacks.
    Example
        >>> float(st.nanmean(st.array([1.0, float("nan"), 2.0])))
        1.5
    """
    array = array_of(a)
    if not _has_nan(array):
        return _deviations.mean(array, axis, dtype, out, keepdims, where=where)
    kind = array.dtype if dtype is None else _dtypes.dtype_of(dtype)
    if kind.kind in "biu":
        raise TypeError("If a is inexact, then dtype must be inexact")
    if where is True:
        axes = _inference.normal_axes(axis, array.ndim)
        _float_errors.of_nan_slices(array, axes, "Mean of empty slice")
    array = array.astype(kind, copy=False)
    return _arguments.give(_nan_mean(array, axis, keepdims, kind, where), out, "unsafe")


def _nan_mean(array: Array, axis, keepdims: bool, kind: np.dtype, where) -> Array:
    result = _skipping(_F.FUNCTION_MEAN, array, axis, keepdims, kind, None, where)
    if result is None:  # each slice is one element
        result = _deviations._plain_mean(array, _inference.normal_axes(axis, array.ndim), keepdims, where)
    return result


def nanvar(
    a: Any, axis: Any = None, dtype=None, out=None, ddof: float = 0, keepdims: bool = False, *, where=True, mean=None,
    correction=None,
) -> Array:
    """The variance along axes, ignoring NaN; NaN where too few elements are left.

    Parameters
        a: array of any shape; of complex numbers the squared absolute values count.
        axis: None for all, an integer, or a tuple of them.
        dtype: in which to compute; integers default to float64.
        out: array of the result's shape that takes it.
        ddof: is subtracted from the number of elements before the division.
        keepdims: whether the axes stay, with one element each.
        where: bools that broadcast with `a`; elements where it is false are left out.
        mean: the mean, as `mean(a, axis, keepdims=True)` gives it, where it is known.
        correction: is subtracted from the number of elements before the division.
    Returns
        An array of the real type that belongs to `dtype`, without the axes.
    Raises
        AxisError for an axis that `a` lacks; ValueError where ddof and correction are given.
    Example
        >>> float(st.nanvar(st.array([1.0, float("nan"), 3.0])))
        1.0
    """
    ddof = _deviations._correction(ddof, correction)
    return _arguments.give(_variance(_F.FUNCTION_VAR, a, axis, dtype, ddof, keepdims, where, mean), out, "unsafe")


def _variance(function: int, a: Any, axis, dtype, ddof: float, keepdims: bool, where, mean) -> Array:
    array = array_of(a)
    if not _has_nan(array):
        return _deviations._variance(function, array, axis, dtype, keepdims, where, mean, ddof)
    kind = array.dtype if dtype is None else _dtypes.dtype_of(dtype)
    if kind.kind in "biu":
        raise TypeError("If a is inexact, then dtype must be inexact")
    axes = _inference.normal_axes(axis, array.ndim)
    if where is True:
        _float_errors.of_nan_slices(array, axes, "Degrees of freedom <= 0 for slice.", most=ddof)
    array = array.astype(kind, copy=False)
    if mean is None and (axes or not array.ndim):
        real = _inference.real_type(kind)
        return _reductions.reduce_by(
            function, array._node, axes, keepdims, real, None, where, skip_nan=True, correction=float(ddof))
    variance = _variance_about(mean, array, axis, ddof, keepdims, where)
    return variance if function == _F.FUNCTION_VAR else _elementwise.sqrt(variance)


def _variance_about(mean: Any, array: Array, axis, ddof: float, keepdims: bool, where) -> Array:
    """The variance from a mean that is known, or of single elements."""
    taken = _counted(array, where)
    count = _reductions.sum(taken, axis, None, None, True)
    if mean is None:
        mean = _nan_mean(array, axis, True, array.dtype, where)
    deviation = choose(taken, array - mean, np.zeros((), array.dtype)[()])
    squares = _elementwise.square(_elementwise.absolute(deviation))
    total = _reductions.sum(squares, axis, None, None, keepdims)
    if not keepdims:
        count = _manipulation.reshape(count, total.shape)
    left = count - ddof
    result = total / left.astype(total.dtype)
    return choose(left <= 0, np.asarray(math.nan, result.dtype)[()], result)


def nanstd(
    a: Any, axis: Any = None, dtype=None, out=None, ddof: float = 0, keepdims: bool = False, *, where=True, mean=None,
    correction=None,
) -> Array:
    """The standard deviation along axes of the elements that are not NaN: the square root of `nanvar`.

    Parameters
        a: array of any shape; of complex numbers the squared absolute values count.
        axis: None for all, an integer, or a tuple of them.
        dtype: in which to compute; integers default to float64.
        out: array of the result's shape that takes it.
        ddof: is subtracted from the number of elements before the division.
        keepdims: whether the axes stay, with one element each.
        where: bools that broadcast with `a`; elements where it is false are left out.
        mean: the mean, as `mean(a, axis, keepdims=True)` gives it, where it is known.
        correction: is subtracted from the number of elements before the division.
    Returns
        An array of the real type that belongs to `dtype`, without the axes.
    Raises
        AxisError for an axis that `a` lacks; ValueError where ddof and correction are given.
    Example
        >>> float(st.nanstd(st.array([1.0, float("nan"), 3.0])))
        1.0
    """
    ddof = _deviations._correction(ddof, correction)
    return _arguments.give(_variance(_F.FUNCTION_STD, a, axis, dtype, ddof, keepdims, where, mean), out, "unsafe")
