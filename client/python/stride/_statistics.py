"""Averages, covariance and correlation, as NumPy computes them."""

import math
from typing import Any, Optional

import numpy as np

from stride import (
    _assembly, _casts, _creation, _deviations, _dtypes, _elementwise, _inference, _manipulation, _reductions,
)
from stride import _origin
from stride._array import Array, array_of
from stride._manipulation import reshape

__all__ = [
    "average",
    "corrcoef",
    "cov",
]


def average(
    a: Any, axis: Any = None, weights: Any = None, returned: bool = False, *, keepdims: bool = False
):
    """The average along axes, in which elements may have weights.

    Parameters
        a: an array of numbers.
        axis: None for all, an integer, or a tuple of them.
        weights: an array of `a`'s shape, or of that of the axes.
        returned: whether the sum of the weights is returned as well.
        keepdims: whether the axes stay, with one element each.
    Returns
        An array, or with `returned` a tuple of two.
    Raises
        TypeError where shapes differ and no axis is given; ValueError where weights do not fit; ZeroDivisionError where
        their sum is 0, for weights that the host has: for others the result is NaN, since they are not read.
    Example
        >>> float(st.average(st.array([1.0, 4.0]), weights=[3, 1]))
        1.75
    """
    array = array_of(a)
    axes = _inference.normal_axes(axis, array.ndim)
    if weights is None:
        result = _deviations.mean(array, axis=axes, keepdims=keepdims)
        count = math.prod(array.shape[i] for i in axes)
        total = _creation.full_in(array.session, result.shape, count, result.dtype)
        return (result, total) if returned else result
    given = array_of(weights, array.session)
    kinds = (array.dtype, given.dtype, *([_dtypes.float64] if array.dtype.kind in "biu" else []))
    kind = _inference.promote(*kinds)
    if given.shape != array.shape:
        if axis is None:
            raise TypeError("Axis must be specified when shapes of a and weights differ.")
        named = axis if isinstance(axis, tuple) else (axis,)
        axes_given = [_inference.normal_axis(one, array.ndim) for one in named]
        if given.shape != tuple(array.shape[i] for i in axes_given):
            raise ValueError("Shape of weights must be consistent with shape of a along specified axis.")
        given = _manipulation.permute_dims(given, np.argsort(axes_given).tolist())
        given = reshape(given, tuple(n if i in axes else 1 for i, n in enumerate(array.shape)))
    wide = _manipulation.broadcast_to(given, array.shape)
    known = given._node.cached()
    if known is not None and known.size and not np.broadcast_to(known, array.shape).sum(axis=axes).all():
        raise ZeroDivisionError("Weights sum to zero, can't be normalized")
    total = _reductions.sum(wide, axis=axes, dtype=kind, keepdims=keepdims)
    result = _reductions.sum(array * wide.astype(kind), axis=axes, dtype=kind, keepdims=keepdims) / total
    if returned:
        return result, _casts.copy(_manipulation.broadcast_to(total, result.shape))
    return result


def cov(
    m: Any,
    y: Any = None,
    rowvar: bool = True,
    bias: bool = False,
    ddof: Optional[int] = None,
    fweights: Any = None,
    aweights: Any = None,
    *,
    dtype=None,
) -> Array:
    """The covariance matrix of variables.

    Parameters
        m: an array of one axis or two, with a variable in each row.
        y: more variables.
        rowvar: False for a variable in each column.
        bias: whether the sums are divided by the number of observations instead of one less.
        ddof: what is subtracted from that number, in place of `bias`.
        fweights: how often each observation counts, in whole numbers; what the host does not have is not checked.
        aweights: the weight of each observation.
        dtype: in which to compute; float64 at least.
    Returns
        A matrix; of one variable an array without axes.
    Raises
        ValueError for more axes, a ddof that is no whole number, and weights that do not fit.
    Example
        >>> st.cov(st.array([[0.0, 1.0, 2.0], [2.0, 1.0, 0.0]])).tolist()
        [[1.0, -1.0], [-1.0, 1.0]]
    """
    if ddof is not None and ddof != int(ddof):
        raise ValueError("ddof must be integer")
    x = array_of(m)
    if x.ndim > 2:
        raise ValueError("m has more than 2 dimensions")
    more = None if y is None else array_of(y, x.session)
    if more is not None and more.ndim > 2:
        raise ValueError("y has more than 2 dimensions")
    if dtype is None:
        kinds = [x.dtype] + ([more.dtype] if more is not None else [])
        dtype = _inference.promote(*kinds, _dtypes.float64)
    rows = _as_rows(x.astype(dtype, copy=False), rowvar)
    if not rows.shape[0]:
        return _creation.zeros((0, 0), rows.dtype)
    if more is not None:
        beside = reshape(more, (1, more.size)) if more.ndim < 2 else more
        beside = _manipulation.matrix_transpose(beside) if not rowvar and beside.shape[0] != 1 else beside
        rows = _assembly.concat([rows, beside.astype(rows.dtype, copy=False)], 0)
    ddof = (0 if bias else 1) if ddof is None else ddof
    weights = _observation_weights(fweights, aweights, rows)
    if weights is None:
        mean = _deviations.mean(rows, axis=1, keepdims=True)
        factor: Any = float(rows.shape[1] - ddof)
        if factor <= 0:
            _origin.warn("Degrees of freedom <= 0 for slice", RuntimeWarning)
            factor = 0.0
    else:
        total = _reductions.sum(weights)
        mean = _reductions.sum(rows * weights, axis=1, keepdims=True) / total
        if ddof == 0:
            factor = total
        elif aweights is None:
            factor = total - ddof
        else:
            factor = total - ddof * _reductions.sum(weights * array_of(aweights, rows.session)) / total
        factor = _elementwise.maximum(factor, 0.0)
    centred = rows - mean
    other = centred if weights is None else centred * weights
    product = centred @ _elementwise.conjugate(_manipulation.matrix_transpose(other))
    if isinstance(factor, float):
        return _manipulation.squeeze(product * (1 / factor if factor else float("inf")))
    return _manipulation.squeeze(product * (1 / factor))


def _as_rows(x: Array, rowvar: bool) -> Array:
    rows = reshape(x, (1, x.size)) if x.ndim < 2 else x
    return _manipulation.matrix_transpose(rows) if not rowvar and x.ndim == 2 else rows


def _observation_weights(fweights: Any, aweights: Any, rows: Array) -> Optional[Array]:
    result = None
    for given, name in ((fweights, "fweights"), (aweights, "aweights")):
        if given is None:
            continue
        weights = array_of(given, rows.session)
        if weights.ndim > 1:
            raise RuntimeError(f"cannot handle multidimensional {name}")
        if weights.shape[0] != rows.shape[1]:
            raise RuntimeError(f"incompatible numbers of samples and {name}")
        known = weights._node.cached()
        if known is not None and name == "fweights" and (known != np.around(known)).any():
            raise TypeError("fweights must be integer")
        if known is not None and (known < 0).any():
            raise ValueError(f"{name} cannot be negative")
        weights = weights.astype(_dtypes.float64)
        result = weights if result is None else result * weights
    return result


def corrcoef(x: Any, y: Any = None, rowvar: bool = True, *, dtype=None) -> Array:
    """The correlation coefficients of variables: their covariance over the product of their deviations.

    Parameters
        x: an array, or what becomes one.
        y: more variables.
        rowvar: False for a variable in each column.
        dtype: in which to compute; float64 at least.
    Returns
        A matrix of numbers from -1 to 1; of one variable an array without axes.
    Raises
        ValueError for more than two axes; ShapeMismatch for a `y` of another length.
    Example
        >>> st.corrcoef(st.array([[0.0, 1.0, 2.0], [2.0, 1.0, 0.0]])).tolist()
        [[1.0, -1.0], [-1.0, 1.0]]
    """
    matrix = cov(x, y, rowvar, dtype=dtype)
    if not matrix.ndim:
        return matrix / matrix
    deviations = _elementwise.sqrt(diagonal_of(matrix).real)
    matrix = matrix / reshape(deviations, (deviations.size, 1)) / reshape(deviations, (1, deviations.size))
    if matrix.dtype.kind == "c":
        from stride._array_attributes import complex_of

        return complex_of(_elementwise.clip(matrix.real, -1, 1), _elementwise.clip(matrix.imag, -1, 1))
    return _elementwise.clip(matrix, -1, 1)


def diagonal_of(matrix: Array) -> Array:
    from stride import linalg

    return _casts.copy(linalg.diagonal(matrix))
