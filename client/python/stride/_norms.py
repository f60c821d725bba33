"""Norms of vectors and matrices, and condition numbers."""

import math

from stride import (
    _creation, _decompositions, _dtypes, _elementwise, _host_functions, _inference, _manipulation, _reductions,
    _triangles,
)
from stride._array import Array
from stride._decompositions import array_of, matrix
from stride._errors import LinAlgError


def _as_floating(x) -> Array:
    x = array_of(x)
    return x.astype(_dtypes.float64) if x.dtype.kind in "biu" else x


def vector_norm(x, /, *, axis=None, keepdims: bool = False, ord=2) -> Array:  # noqa: A002
    """Norms of vectors.

    Parameters: `x`, an array; `axis`, an axis or several that the vectors are in, by default all; `keepdims`, whether
    these stay with one element; `ord`, any real number, inf, -inf, or 0 for the count of elements that are not 0.
    Returns real numbers. Raises ValueError for another order, AxisError for an axis that there is not.

    >>> float(stride.linalg.vector_norm(stride.asarray([3.0, 4.0])))
    5.0
    """
    x = _as_floating(x)
    if isinstance(ord, str) or isinstance(ord, complex):
        raise ValueError(f"no such norm of vectors: {ord!r}")
    if ord is None or ord == 2:
        return _reductions.norm(x, axis=axis, keepdims=keepdims)
    size = _elementwise.absolute(x)
    if ord == math.inf:
        return _reductions.max(size, axis=axis, keepdims=keepdims, initial=None if size.size else 0)
    if ord == -math.inf:
        return _reductions.min(size, axis=axis, keepdims=keepdims)
    if ord == 0:
        return _reductions.count_nonzero(x, axis=axis, keepdims=keepdims).astype(size.dtype)
    if ord == 1:
        return _reductions.sum(size, axis=axis, keepdims=keepdims)
    return _reductions.sum(size ** float(ord), axis=axis, keepdims=keepdims) ** (1 / float(ord))


def matrix_norm(x, /, *, keepdims: bool = False, ord="fro") -> Array:  # noqa: A002
    """Norms of matrices.

    Parameters: `x`, matrices (..., m, n); `keepdims`, whether the last two axes stay with one element; `ord`: `fro`,
    `nuc`, 1, -1, 2, -2, inf or -inf. Returns real numbers (...). Raises ValueError for another order, LinAlgError for
    arrays with fewer than two axes.

    >>> float(stride.linalg.matrix_norm(stride.eye(4)))
    2.0
    """
    x = _as_floating(matrix(x, "matrix_norm"))
    if ord is None or ord == "fro" or ord == "f":
        return _reductions.norm(x, axis=(-2, -1), keepdims=keepdims)
    if ord in ("nuc", 2, -2):
        values = _decompositions.svdvals(x)
        if ord == "nuc":
            result = _reductions.sum(values, axis=-1)
        elif not values.shape[-1]:
            result = _creation.zeros(values.shape[:-1], dtype=values.dtype)
        else:
            result = values[..., 0 if ord == 2 else -1]
    elif not isinstance(ord, str) and ord in (1, -1, math.inf, -math.inf):
        sums = _reductions.sum(_elementwise.absolute(x), axis=-2 if abs(ord) == 1 else -1)
        if ord > 0:
            result = _reductions.max(sums, axis=-1, initial=None if sums.shape[-1] else 0)
        else:
            result = _reductions.min(sums, axis=-1)
    else:
        raise ValueError(f"no such norm of matrices: {ord!r}")
    return _manipulation.expand_dims(result, axis=(-2, -1)) if keepdims else result


def norm(x, ord=None, axis=None, keepdims: bool = False) -> Array:  # noqa: A002
    """Norms of vectors along one axis, of matrices in two, or without `ord` and `axis` of all elements.

    Parameters: `x`, an array; `ord`, as vector_norm or matrix_norm has it, by default the square root of the sum of
    squares; `axis`, one or a pair, by default those of an `x` with one or two axes; `keepdims`, whether they stay with
    one element. Returns real numbers. Raises ValueError for another order or number of axes.

    >>> float(stride.linalg.norm(stride.asarray([3.0, 4.0])))
    5.0
    """
    x = array_of(x)
    if axis is None:
        if ord is None:
            return vector_norm(x, keepdims=keepdims)
        axis = tuple(range(x.ndim))
        if x.ndim not in (1, 2):
            raise ValueError(f"with ord= and without axis= norms are of arrays of one axis or two, not of {x.ndim}")
    elif isinstance(axis, (tuple, list)) and len(axis) not in (1, 2):
        raise ValueError("norms are of vectors and matrices: one axis or two")
    axes = _inference.normal_axes(axis, x.ndim)
    if len(axes) == 1:
        return vector_norm(x, axis=axes, keepdims=keepdims, ord=2 if ord is None else ord)
    result = matrix_norm(_manipulation.moveaxis(x, axes, (-2, -1)), ord="fro" if ord is None else ord)
    return _manipulation.expand_dims(result, axis=axes) if keepdims else result


def cond(x, p=None) -> Array:
    """The condition number: the norm times that of the inverse.

    Parameters: `x`, matrices (..., m, n), square unless p is None, 2 or -2; `p`, the norm's order as matrix_norm has
    it, None as 2. Returns real numbers (...): inf of a singular matrix, nan only of one with a nan. Raises LinAlgError
    for matrices without elements.

    >>> float(stride.linalg.cond(stride.eye(2)))
    1.0
    """
    x = matrix(x, "cond", square=p not in (None, 2, -2))
    if not min(x.shape[-2:]):
        raise LinAlgError("linalg.cond of matrices without elements is not defined", reason="LINEAR_ALGEBRA")
    if p in (None, 2, -2):
        values = _decompositions.svdvals(x)
        ratio = values[..., -1] / values[..., 0] if p == -2 else values[..., 0] / values[..., -1]
    else:
        # A singular matrix has no inverse; another takes its place.
        singular = _reductions.any(_decompositions.lu(x, "cond")[0] == 0, axis=-1)
        chosen = _elementwise.where(
            _manipulation.expand_dims(singular, axis=(-2, -1)), _triangles.eye(x.shape[-1], dtype=x.dtype), x
        )
        ratio = _elementwise.where(
            singular, math.inf, matrix_norm(x, ord=p) * matrix_norm(_decompositions.inv(chosen), ord=p)
        )
    undefined = _elementwise.isnan(ratio) & ~_reductions.any(_elementwise.isnan(x), axis=(-2, -1))
    return _elementwise.where(undefined, math.inf, ratio)


_host_functions.offer(globals(), "linalg")
