"""Linear algebra: the array API's `linalg` extension, and NumPy's functions of the same names. Matrices are in the last
two axes.

Integers are computed as float64. A matrix for which there is no result (singular, not positive definite) is reported
when a result is read, by LinAlgError; shapes that do not fit raise it at once."""

import math
import operator
from typing import Optional, Sequence

import numpy as np

from stride import (
    _assembly, _casts, _creation, _dtypes, _elementwise, _errors, _host_functions, _inference, _manipulation,
    _reductions, _triangles,
)
from stride._array import Array
from stride._decompositions import (
    EighResult,
    EigResult,
    NotMatrices,
    QRResult,
    SlogdetResult,
    SVDResult,
    adjoint,
    array_of as _array,
    cholesky,
    det,
    diagonals,
    eig,
    eigh,
    eigvals,
    eigvalsh,
    floating,
    inv,
    matrix as _matrix,
    qr,
    slogdet,
    solve,
    svd,
    svdvals,
    together,
)
from stride._errors import LinAlgError
from stride._linear_algebra import matmul, matvec, tensordot, vecdot, vecmat
from stride._norms import cond, matrix_norm, norm, vector_norm
from stride._ufunc import _give

__all__ = [
    "EigResult",
    "EighResult",
    "LinAlgError",
    "QRResult",
    "SVDResult",
    "SlogdetResult",
    "cholesky",
    "cond",
    "cross",
    "det",
    "diagonal",
    "eig",
    "eigh",
    "eigvals",
    "eigvalsh",
    "inv",
    "lstsq",
    "matmul",
    "matrix_norm",
    "matrix_power",
    "matrix_rank",
    "matrix_transpose",
    "matvec",
    "multi_dot",
    "norm",
    "outer",
    "pinv",
    "qr",
    "slogdet",
    "solve",
    "svd",
    "svdvals",
    "tensordot",
    "tensorinv",
    "tensorsolve",
    "trace",
    "vecdot",
    "vecmat",
    "vector_norm",
]


def diagonal(x, /, *, offset: int = 0) -> Array:
    """The diagonals, for reading: a view of an array without gaps, else a copy.

    Parameters: `x`, matrices (..., m, n); `offset`, how far above the main diagonal. Returns an array (..., k) of this
    type. Raises LinAlgError for arrays with fewer than two axes.

    >>> stride.linalg.diagonal(stride.eye(2)).tolist()
    [1.0, 1.0]
    """
    return diagonals(_matrix(x, "diagonal"), operator.index(offset))


def trace(x, /, *, offset: int = 0, dtype=None) -> Array:
    """The sums of the diagonals.

    Parameters: `x`, matrices (..., m, n); `offset`, how far above the main diagonal; `dtype`, the sum's type, by
    default that of `sum`. Returns an array (...). Raises LinAlgError for arrays with fewer than two axes.

    >>> float(stride.linalg.trace(stride.eye(3)))
    3.0
    """
    return _reductions.sum(diagonal(x, offset=offset), axis=-1, dtype=dtype)


def matrix_transpose(x, /) -> Array:
    """The matrices with rows for columns: a view.

    Parameters: `x`, matrices (..., m, n). Returns an array (..., n, m) of this type. Raises ValueError for arrays with
    fewer than two axes.

    >>> stride.linalg.matrix_transpose(stride.ones((2, 3))).shape
    (3, 2)
    """
    x = _array(x)
    if x.ndim < 2:
        raise ValueError(f"linalg.matrix_transpose: array must be at least 2-dimensional, but it has {x.ndim} axes")
    return _manipulation.matrix_transpose(x)


def outer(x1, x2, /) -> Array:
    """The products of each element of one vector with each of another.

    Parameters: `x1` (m,) and `x2` (n,). Returns an array (m, n). Raises LinAlgError for what are no vectors.

    >>> stride.linalg.outer(stride.ones(2), stride.ones(3)).shape
    (2, 3)
    """
    x1, x2 = together(x1, x2)
    if x1.ndim != 1 or x2.ndim != 1:
        raise NotMatrices(f"linalg.outer: Input arrays must be one-dimensional, not of shape {x1.shape} and {x2.shape}")
    return _manipulation.reshape(x1, (x1.shape[0], 1)) * x2


def cross(x1, x2, /, *, axis: int = -1) -> Array:
    """The cross products of vectors of three elements.

    Parameters: `x1` and `x2`, arrays whose other axes broadcast; `axis`, that of the vectors in both. Returns an array
    of the broadcast shape. Raises ShapeMismatch where the axis has not three elements, AxisError where there is none.

    >>> stride.linalg.cross(stride.asarray([1, 0, 0]), stride.asarray([0, 1, 0])).tolist()
    [0, 0, 1]
    """
    x1, x2 = together(x1, x2)
    axes = [_inference.normal_axis(axis, x.ndim) for x in (x1, x2)]
    if x1.shape[axes[0]] != 3 or x2.shape[axes[1]] != 3:
        raise _errors.ShapeMismatch(
            f"linalg.cross: input arrays must be (arrays of) 3-dimensional vectors, not {x1.shape} and {x2.shape}",
            reason="SHAPE_MISMATCH",
        )
    a, b = ([_manipulation.moveaxis(x, axis, -1)[..., i] for i in range(3)] for x in (x1, x2))
    parts = [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]
    return _manipulation.moveaxis(_assembly.stack(parts, axis=-1), -1, axis)


def matrix_power(a, n: int) -> Array:
    """A power of square matrices.

    Parameters: `a`, matrices (..., m, m); `n`, an integer, of which a negative one takes the inverse. Returns an array
    of this shape. Raises TypeError for an exponent that is no integer, LinAlgError for matrices that are not square;
    where one is singular and n negative, when the result is read.

    >>> stride.linalg.matrix_power(stride.eye(2) * 2, 3).tolist()
    [[8.0, 0.0], [0.0, 8.0]]
    """
    a = _matrix(a, "matrix_power", square=True)
    n = operator.index(n)
    if n == 0:
        identity = _triangles.eye(a.shape[-1], dtype=a.dtype)
        return _casts.copy(_manipulation.broadcast_to(identity, a.shape))
    if n < 0:
        a, n = inv(a), -n
    if n == 1:
        return _casts.copy(a)
    while not n & 1:
        a, n = matmul(a, a), n >> 1
    result = a
    while n := n >> 1:
        a = matmul(a, a)
        if n & 1:
            result = matmul(result, a)
    return result


# --- by singular values ---


def _tolerance(values: Array, shape, dtype, rtol) -> Array:
    """The bound below which singular values of matrices of this shape count as zero."""
    if rtol is None:
        rtol = max(shape[-2:]) * float(np.finfo(dtype).eps)
    elif np.ndim(rtol):
        rtol = _manipulation.expand_dims(_array(rtol), axis=-1)
    return _reductions.max(values, axis=-1, keepdims=True) * rtol


def matrix_rank(A, tol=None, hermitian: bool = False, *, rtol=None) -> Array:  # noqa: N803, NumPy's name
    """The number of singular values that count as nonzero. A vector's rank is 1, or 0 where it is zero.

    Parameters: `A`, matrices (..., m, n), or a vector; `tol`, what a value must be above, or `rtol`, the same relative
    to the largest, by default max(m, n) times the type's eps: numbers, or one for each matrix; `hermitian` says that
    the matrices are, which is faster. Returns int64 (...). Raises ValueError where both are given.

    >>> int(stride.linalg.matrix_rank(stride.ones((3, 3))))
    1
    """
    if tol is not None and rtol is not None:
        raise ValueError("`tol` and `rtol` can't be both set.")
    A = _array(A)
    if A.ndim < 2:
        return _reductions.any(A != 0).astype(_dtypes.int64)
    if not min(A.shape[-2:]):
        return _creation.zeros(A.shape[:-2], dtype=_dtypes.int64)
    values = svd(A, compute_uv=False, hermitian=hermitian)
    if tol is None:
        least = _tolerance(values, A.shape, values.dtype, rtol)
    else:
        least = _manipulation.expand_dims(_array(tol), axis=-1) if np.ndim(tol) else tol
    return _reductions.count_nonzero(values > least, axis=-1)


# NumPy's: what `rtol` is where it is not given.
_NOT_GIVEN = object()


def pinv(a, rcond=None, hermitian: bool = False, *, rtol=_NOT_GIVEN) -> Array:
    """The pseudo-inverse of Moore and Penrose.

    Parameters: `a`, matrices (..., m, n); `rcond` or `rtol`, relative to the largest singular value what others must be
    above: numbers, or one for each matrix, by default 1e-15, of `rtol=None` max(m, n) times the type's eps; `hermitian`
    says that the matrices are, which is faster. Returns an array (..., n, m). Raises ValueError where both are given,
    LinAlgError for arrays with fewer than two axes.

    >>> stride.linalg.pinv(stride.eye(2) * 2).tolist()
    [[0.5, 0.0], [0.0, 0.5]]
    """
    a = _matrix(a, "pinv", square=hermitian)
    if rcond is not None and rtol is not _NOT_GIVEN:
        raise ValueError("`rtol` and `rcond` can't be both set.")
    relative = rcond if rcond is not None else 1e-15 if rtol is _NOT_GIVEN else rtol
    if not a.size:
        return _creation.zeros((*a.shape[:-2], a.shape[-1], a.shape[-2]), dtype=floating("pinv", a.dtype))
    u, s, vh = svd(a, full_matrices=False, hermitian=hermitian)
    is_large = s > _tolerance(s, a.shape, s.dtype, relative)
    inverse = _elementwise.where(is_large, 1 / _elementwise.where(is_large, s, 1), 0)
    return matmul(adjoint(vh) * _manipulation.expand_dims(inverse, axis=-2), adjoint(u))


def lstsq(a, b, rcond: Optional[float] = None):
    """The solution of least squares of a x = b. Reads the rank: one round trip.

    Parameters: `a`, one matrix (m, n); `b`, (m,) or (m, k); `rcond`, relative to the largest singular value what others
    must be above, by default max(m, n) times the type's eps, a negative one half the type's eps. Returns x, (n,) or (n,
    k); the sums of squared residuals, (1,) or (k,), or (0,) where the rank is below n or m <= n; the rank; the singular
    values (min(m, n),). Raises LinAlgError for other shapes.

    >>> stride.linalg.lstsq(stride.eye(2) * 2, stride.ones(2))[0].shape
    (2,)
    """
    a, b = together(a, b)
    if a.ndim != 2 or b.ndim not in (1, 2) or b.shape[0] != a.shape[0]:
        raise NotMatrices(
            f"linalg.lstsq: Incompatible dimensions: one matrix and as many rows of right-hand sides are needed, "
            f"not {a.shape} and {b.shape}"
        )
    m, n = a.shape
    dtype = floating("lstsq", a.dtype, b.dtype)
    a, b = a.astype(dtype, copy=False), b.astype(dtype, copy=False)
    right = _manipulation.reshape(b, (m, 1)) if b.ndim == 1 else b
    u, values, vh = svd(a, full_matrices=False)
    if m and n:
        if rcond is not None and rcond < 0:
            rcond = float(np.finfo(dtype).eps) / 2  # the rounding error of one operation, as LAPACK has it
        counts = values > _tolerance(values, a.shape, values.dtype, rcond)
        inverse = _elementwise.where(counts, 1 / _elementwise.where(counts, values, 1), 0)
        # One factor after another: the product of all would lose what a small singular value leaves.
        x = matmul(adjoint(vh), _manipulation.expand_dims(inverse, axis=-1) * matmul(adjoint(u), right))
        rank = int(_reductions.count_nonzero(counts))
    else:
        x, rank = _creation.zeros((n, right.shape[1]), dtype=dtype), 0
    if rank == n and m > n:
        residuals = _reductions.sum(_elementwise.square(_elementwise.absolute(right - matmul(a, x))), axis=0)
    else:
        residuals = _creation.zeros((0,), dtype=values.dtype)
    return _manipulation.reshape(x, (n,)) if b.ndim == 1 else x, residuals, np.int32(rank), values


# --- products and equations of several axes ---


def multi_dot(arrays: Sequence, *, out: Optional[Array] = None) -> Array:
    """The product of several matrices, in the order of fewest multiplications.

    Parameters: `arrays`, two or more matrices (n_i, n_(i+1)), of which the first and the last may be vectors; `out`, an
    array of the result's type and shape to be filled. Returns the product, without the axes that vectors lack, or
    `out`. Raises ValueError for fewer than two, LinAlgError for what are no matrices.

    >>> stride.linalg.multi_dot([stride.ones((2, 3)), stride.ones((3, 4)), stride.ones(4)]).tolist()
    [12.0, 12.0]
    """
    arrays = [_array(one) for one in arrays]
    if len(arrays) < 2:
        raise ValueError("multi_dot takes at least two arrays")
    is_row, is_column = arrays[0].ndim == 1, arrays[-1].ndim == 1
    if is_row:
        arrays[0] = _manipulation.expand_dims(arrays[0], axis=0)
    if is_column:
        arrays[-1] = _manipulation.expand_dims(arrays[-1], axis=1)
    for one in arrays:
        if one.ndim != 2:
            raise NotMatrices(f"multi_dot takes matrices, and vectors first and last, not {one.shape}")
    for left, right in zip(arrays, arrays[1:]):
        if left.shape[1] != right.shape[0]:
            raise _errors.ShapeMismatch(
                f"multi_dot: {left.shape} does not multiply {right.shape}", reason="SHAPE_MISMATCH"
            )
    result = _product(arrays, _splits([arrays[0].shape[0], *(one.shape[1] for one in arrays)]), 0, len(arrays) - 1)
    result = _manipulation.reshape(result, result.shape[is_row : 2 - is_column])
    if out is not None and (out.shape, out.dtype) != (result.shape, result.dtype):
        raise _errors.ShapeMismatch(
            f"multi_dot: out= is of {out.dtype} and shape {out.shape}, the result of {result.dtype} and {result.shape}",
            reason="SHAPE_MISMATCH",
        )
    return _give(result, out, None, "same_kind")


def _splits(extents: list) -> dict:
    """Where each run of matrices is parted, by the costs of shorter ones (Cormen et al., "Introduction to Algorithms",
    section 15.2)."""
    count = len(extents) - 1
    costs, splits = {(i, i): 0 for i in range(count)}, {}
    for length in range(1, count):
        for i in range(count - length):
            j = i + length
            costs[i, j], splits[i, j] = min(
                (costs[i, k] + costs[k + 1, j] + extents[i] * extents[k + 1] * extents[j + 1], k) for k in range(i, j)
            )
    return splits


def _product(arrays: list, splits: dict, i: int, j: int) -> Array:
    if i == j:
        return arrays[i]
    return matmul(_product(arrays, splits, i, splits[i, j]), _product(arrays, splits, splits[i, j] + 1, j))


def tensorsolve(a, b, axes: Optional[Sequence[int]] = None) -> Array:
    """The solution x of tensordot(a, x, x.ndim) = b.

    Parameters: `a`, of shape (*b.shape, *q), as many elements in q as in b; `b`, an array; `axes`, those of `a` that
    are put last first. Returns an array of shape q. Raises LinAlgError where `a` is not square in this sense; where it
    is singular, when the result is read.

    >>> stride.linalg.tensorsolve(stride.reshape(stride.eye(4), (2, 2, 2, 2)), stride.ones((2, 2))).shape
    (2, 2)
    """
    a, b = together(a, b)
    if axes is not None:
        order = [i for i in range(a.ndim) if i not in _inference.normal_axes(tuple(axes), a.ndim)]
        a = _manipulation.permute_dims(a, (*order, *_inference.normal_axes(tuple(axes), a.ndim)))
    shape = a.shape[b.ndim :]
    count = math.prod(shape)
    if a.size != count * count or b.size != count:
        raise NotMatrices(
            f"tensorsolve: `a` of shape {a.shape} has not as many elements in its first {b.ndim} axes, as `b` has, "
            "as in the others"
        )
    return _manipulation.reshape(
        solve(_manipulation.reshape(a, (count, count)), _manipulation.reshape(b, (count,))), shape
    )


def tensorinv(a, ind: int = 2) -> Array:
    """The inverse of tensordot by `a`: tensordot(tensorinv(a, ind), tensordot(a, x, ind), ind) = x.

    Parameters: `a`, of shape (*p, *q), as many elements in p as in q; `ind`, how many axes p has, above 0. Returns an
    array of shape (*q, *p). Raises ValueError for another `ind`, LinAlgError where `a` is not square in this sense;
    where it is singular, when the result is read.

    >>> stride.linalg.tensorinv(stride.reshape(stride.eye(6), (6, 2, 3)), ind=1).shape
    (2, 3, 6)
    """
    a = _array(a)
    if ind <= 0:
        raise ValueError(f"ind is above 0, not {ind}")
    first, last = a.shape[:ind], a.shape[ind:]
    if math.prod(first) != math.prod(last):
        raise NotMatrices(f"tensorinv: the first {ind} axes of {a.shape} have not as many elements as the others")
    return _manipulation.reshape(inv(_manipulation.reshape(a, (math.prod(first), math.prod(last)))), (*last, *first))


_host_functions.offer(globals(), "linalg")


def __getattr__(name: str):
    from stride import _numpy_names

    return _numpy_names.missing_in("linalg", name)
