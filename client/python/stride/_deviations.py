"""Means, variances and standard deviations, with NumPy's types."""

import math

import numpy as np

from stride import _dtypes, _inference, _local, _reductions
from stride._array import Array, node_of, wrap
from stride._elementwise import absolute, sqrt, square
from stride._reductions import _F, _give, reduce_by

__all__ = ["mean", "std", "var"]


def mean(a, axis=None, dtype=None, out=None, keepdims: bool = False, *, where=True) -> Array:
    """The arithmetic mean along axes.

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
        >>> st.mean(st.array([[1, 2], [3, 5]]), axis=0).tolist()
        [2.0, 3.5]
    """
    if type(a) in _local.classes and dtype is out is None and where is True and not keepdims:
        if (short := _local.reduced("mean", a, axis)) is not None:
            return short
    array = a if isinstance(a, Array) else wrap(node_of(a))
    if out is not None:
        return _give(mean(array, axis, dtype, None, keepdims, where=where), out, "unsafe")
    if dtype is not None:
        dtype = _dtypes.dtype_of(dtype)
        if dtype.kind in "biu":
            return _whole_mean(array, axis, dtype, keepdims, where)
        array = array.astype(dtype, copy=False)
    axes = _inference.normal_axes(axis, array.ndim)
    if 0 in array.shape:
        _float_errors().of_mean(array.shape, axes)
    return _plain_mean(array, axes, keepdims, where)


def _float_errors():
    from stride import _float_errors

    return _float_errors


def _plain_mean(array: Array, axes: tuple, keepdims: bool, where) -> Array:
    dtype = _dtypes.float64 if array.dtype.kind in "biu" else array.dtype
    if not axes and array.ndim and where is True:
        return array.astype(dtype)
    if not axes and array.ndim:
        from stride._elementwise import where as choose

        return choose(where, array.astype(dtype), float("nan"))
    return reduce_by(_F.FUNCTION_MEAN, array._node, axes, keepdims, dtype, None, where)


def _whole_mean(array: Array, axis, dtype: np.dtype, keepdims: bool, where) -> Array:
    """The mean in an integer type, as in NumPy: the sum in that type, and the whole part of the quotient."""
    axes = _inference.normal_axes(axis, array.ndim)
    total = _reductions.sum(array, axis=axes, dtype=dtype, keepdims=keepdims, where=where)
    if where is True:
        count = math.prod(array.shape[i] for i in axes)
    else:
        from stride import _manipulation

        taken = _manipulation.broadcast_to(
            where if isinstance(where, Array) else wrap(node_of(where, array.session)), array.shape
        )
        count = _reductions.count_nonzero(taken, axis=axes, keepdims=keepdims)
    return (total / count).astype(dtype)


def _correction(ddof: float, correction) -> float:
    if correction is None:
        return ddof
    if ddof != 0:
        raise ValueError("ddof and correction can't be provided simultaneously.")
    return correction


def var(
    a,
    axis=None,
    dtype=None,
    out=None,
    ddof: float = 0,
    keepdims: bool = False,
    *,
    where=True,
    mean=None,
    correction=None,
) -> Array:
    """The variance along axes: the mean of the squared distances from the mean.

    Parameters
        a: array of any shape; of complex numbers the squared absolute values count.
        axis: None for all, an integer, or a tuple of them.
        dtype: in which to compute; integers default to float64.
        out: array of the result's shape that takes it.
        ddof, correction: is subtracted from the number of elements before the division.
        keepdims: whether the axes stay, with one element each.
        where: bools that broadcast with `a`; elements where it is false are left out.
        mean: the mean, as `mean(a, axis, keepdims=True)` gives it, where it is known.
    Returns
        An array of the real type that belongs to `dtype`, without the axes.
    Raises
        AxisError for an axis that `a` lacks; ValueError where ddof and correction are given.
    Example
        >>> float(st.var(st.array([1.0, 2.0, 3.0, 6.0])))
        3.5
    """
    correction = _correction(ddof, correction)
    return _give(_variance(_F.FUNCTION_VAR, a, axis, dtype, keepdims, where, mean, correction), out, "unsafe")


def _variance(function: int, a, axis, dtype, keepdims: bool, where, mean, correction) -> Array:
    array = a if isinstance(a, Array) else wrap(node_of(a))
    if dtype is not None:
        array = array.astype(dtype, copy=False)
    axes = _inference.normal_axes(axis, array.ndim)
    if mean is not None or not axes and array.ndim:
        if mean is None:
            mean = _plain_mean(array, axes, True, where)
        variance = _variance_about(mean, array, axes, keepdims, where, correction)
        return variance if function == _F.FUNCTION_VAR else sqrt(variance)
    if where is True:
        count = math.prod(array.shape[i] for i in axes)
        if count <= correction:
            _float_errors().of_variance(count, correction)
    dtype = _dtypes.float64 if array.dtype.kind in "biu" else _inference.real_type(array.dtype)
    return reduce_by(
        function, array._node, axes, keepdims, dtype, None, where, correction=float(correction))


def _variance_about(mean, array: Array, axes: tuple, keepdims: bool, where, correction) -> Array:
    """The variance from a mean that is known."""
    deviations = array - mean
    deviations = square(absolute(deviations) if deviations.dtype.kind == "c" else deviations)
    total = _reductions.sum(deviations, axis=axes, keepdims=keepdims, where=where)
    if where is not True:
        from stride import _elementwise, _manipulation

        taken = _manipulation.broadcast_to(
            where if isinstance(where, Array) else wrap(node_of(where, array.session)), array.shape
        )
        # No degrees of freedom left: as below.
        left = _elementwise.maximum(_reductions.count_nonzero(taken, axis=axes, keepdims=keepdims) - correction, 0)
        return total / left.astype(total.dtype)
    count = math.prod(array.shape[i] for i in axes)
    # As NumPy: no degrees of freedom left give infinities and NaN.
    left = float(count - correction)
    if left <= 0:
        _float_errors().of_variance(count, correction)
    return total / (left if left > 0 else 0.0)


def std(
    a,
    axis=None,
    dtype=None,
    out=None,
    ddof: float = 0,
    keepdims: bool = False,
    *,
    where=True,
    mean=None,
    correction=None,
) -> Array:
    """The standard deviation along axes: the square root of `var`.

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
        >>> float(st.std(st.array([1.0, 3.0])))
        1.0
    """
    correction = _correction(ddof, correction)
    return _give(_variance(_F.FUNCTION_STD, a, axis, dtype, keepdims, where, mean, correction), out, "unsafe")
