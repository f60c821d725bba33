"""Linear algebra: the array API's `linalg` extension, and NumPy's functions of the same names. Matrices are in the last two axes.

A matrix for which there is no result (singular, not positive definite) is told when a result is read, by LinAlgError."""

import functools
import math
from typing import NamedTuple, Optional

import numpy as np

from stride import _creation, _dtypes, _elementwise, _errors, _inference, _manipulation, _reductions
from stride._array import Array, node_of, wrap
from stride._errors import LinAlgError
from stride._graph import record_several
from stride._linear_algebra import matmul, tensordot, vecdot
from stride._manipulation import matrix_transpose
from stride.v1 import operation_pb2 as pb

__all__ = ["LinAlgError", "cholesky", "cond", "cross", "det", "diagonal", "eig", "eigh", "eigvals", "eigvalsh", "inv", "lstsq", "matmul", "matrix_norm",
           "matrix_power", "matrix_rank", "matrix_transpose", "norm", "outer", "pinv", "qr", "slogdet", "solve", "svd", "svdvals",
           "tensordot", "trace", "vecdot", "vector_norm"]

class EigResult(NamedTuple):
    eigenvalues: Array
    eigenvectors: Array


class EighResult(NamedTuple):
    eigenvalues: Array
    eigenvectors: Array


class QRResult(NamedTuple):
    Q: Array
    R: Array


class SlogdetResult(NamedTuple):
    sign: Array
    logabsdet: Array


class SVDResult(NamedTuple):
    U: Array
    S: Array
    Vh: Array


# --- what the service has ---

def _array(x) -> Array:
    return x if isinstance(x, Array) else wrap(node_of(x))


def _floating(name: str, *dtypes) -> np.dtype:
    """The type of the computation: integers are taken as float64."""
    dtype = _inference.promote(*dtypes)
    if dtype.kind in "biu":
        return _dtypes.float64
    if dtype == _dtypes.float16:
        raise _errors.DataTypeMismatch(f"linalg.{name} is of float32, float64, complex64 and complex128; convert the array first")
    return dtype


def _real(dtype: np.dtype) -> np.dtype:
    return {_dtypes.complex64: _dtypes.float32, _dtypes.complex128: _dtypes.float64}.get(dtype, dtype)


def _matrix(x, name: str, square: bool = False) -> Array:
    x = _array(x)
    if x.ndim < 2:
        raise _errors.ShapeMismatch(f"linalg.{name} takes a matrix or a stack of them, not {x.ndim} axes", reason="SHAPE_MISMATCH")
    if square and x.shape[-1] != x.shape[-2]:
        raise _errors.ShapeMismatch(f"linalg.{name} takes square matrices, not {x.shape[-2:]}", reason="SHAPE_MISMATCH")
    return x


def _compute(name: str, function: str, arrays, results, **flags) -> list:
    """Arrays for the results, (shape, dtype) each."""
    number = pb.Linalg.Function.Value(f"FUNCTION_{function}")

    def build(flush, operands, handles, origin):
        operation = pb.Operation(linalg=pb.Linalg(function=number, operands=operands, **flags))
        for handle in handles:
            operation.outputs.add(handle=handle)
        flush.add(operation, origin)

    nodes = tuple(array._node for array in arrays)
    # Those that iterate need many times that.
    num_products = math.prod(nodes[0].shape) * min(nodes[0].shape[-2:])
    return [wrap(node) for node in record_several(nodes[0].session, results, build, nodes, num_products)]


def cholesky(x, /, *, upper: bool = False) -> Array:
    """L with x = L L^H, or with `upper` U with x = U^H U."""
    x = _matrix(x, "cholesky", square=True)
    return _compute("cholesky", "CHOLESKY", (x,), [(x.shape, _floating("cholesky", x.dtype))], upper=bool(upper))[0]


def qr(x, /, *, mode: str = "reduced"):
    """Q and R; `mode` is reduced, complete, or NumPy's r: R alone."""
    if mode not in ("reduced", "complete", "r"):
        raise ValueError(f"mode is reduced, complete or r, not {mode}")
    x = _matrix(x, "qr")
    dtype = _floating("qr", x.dtype)
    *batch, m, n = x.shape
    k = m if mode == "complete" else min(m, n)
    results = [((*batch, m, k), dtype), ((*batch, k, n), dtype)]
    if mode == "r":
        return _compute("qr", "QR", (x,), results[1:], values_only=True)[0]
    return QRResult(*_compute("qr", "QR", (x,), results, full=mode == "complete"))


def svd(x, /, *, full_matrices: bool = True) -> SVDResult:
    x = _matrix(x, "svd")
    dtype = _floating("svd", x.dtype)
    *batch, m, n = x.shape
    k = min(m, n)
    results = [((*batch, m, m if full_matrices else k), dtype), ((*batch, k), _real(dtype)), ((*batch, n if full_matrices else k, n), dtype)]
    return SVDResult(*_compute("svd", "SVD", (x,), results, full=bool(full_matrices)))


def svdvals(x, /) -> Array:
    x = _matrix(x, "svdvals")
    shape = (*x.shape[:-2], min(x.shape[-2:]))
    return _compute("svdvals", "SVD", (x,), [(shape, _real(_floating("svdvals", x.dtype)))], values_only=True)[0]


def _uplo(which: str) -> bool:
    if which not in ("L", "U", "l", "u"):
        raise ValueError(f"UPLO is L or U, not {which}")
    return which in "Uu"


def eigh(x, /, UPLO: str = "L") -> EighResult:  # noqa: N803, NumPy's name
    """Of Hermitian matrices, of which one triangle is read."""
    x = _matrix(x, "eigh", square=True)
    dtype = _floating("eigh", x.dtype)
    results = [(x.shape[:-1], _real(dtype)), (x.shape, dtype)]
    return EighResult(*_compute("eigh", "EIGH", (x,), results, upper=_uplo(UPLO)))


def eigvalsh(x, /, UPLO: str = "L") -> Array:  # noqa: N803
    x = _matrix(x, "eigvalsh", square=True)
    dtype = _real(_floating("eigvalsh", x.dtype))
    return _compute("eigvalsh", "EIGH", (x,), [(x.shape[:-1], dtype)], upper=_uplo(UPLO), values_only=True)[0]


def _complex(dtype: np.dtype) -> np.dtype:
    return {_dtypes.float32: _dtypes.complex64, _dtypes.float64: _dtypes.complex128}.get(dtype, dtype)


@functools.lru_cache(maxsize=None)
def _numpy_gives_real() -> bool:
    """Whether numpy.linalg.eig gives real numbers where all eigenvalues are; NumPy from 2.5 on gives complex ones."""
    return np.linalg.eigvals(np.ones((1, 1))).dtype.kind == "f"


def _real_if_all_are(x: Array, values: Array) -> bool:
    """True if the results become real, as in the installed NumPy. Reads the values in one round trip. A traced function
    cannot read values and keeps complex numbers."""
    if not _numpy_gives_real() or x.dtype.kind == "c" or x._node.session._is_trace or values.session._is_trace:
        return False
    return not bool(_reductions.any(_elementwise.imag(values) != 0))


def eig(x, /) -> EigResult:
    """Eigenvalues of any square matrices, in no order, and the right eigenvectors as columns: always complex, as in the
    standard. `numpy.linalg.eig` returns real ones where NumPy's does."""
    x = _matrix(x, "eig", square=True)
    dtype = _complex(_floating("eig", x.dtype))
    return EigResult(*_compute("eig", "EIG", (x,), [(x.shape[:-1], dtype), (x.shape, dtype)]))


def eig_as_numpy(x, /) -> EigResult:
    """Real or complex as the installed NumPy returns them for the same matrices; complex in `jit` and `vmap`."""
    values, vectors = eig(x)
    if _real_if_all_are(_array(x), values):
        values, vectors = _elementwise.real(values), _elementwise.real(vectors)
    return EigResult(values, vectors)


def eigvals(x, /) -> Array:
    """The eigenvalues of `eig` alone."""
    x = _matrix(x, "eigvals", square=True)
    dtype = _complex(_floating("eigvals", x.dtype))
    values = _compute("eigvals", "EIG", (x,), [(x.shape[:-1], dtype)], values_only=True)[0]
    return values


def eigvals_as_numpy(x, /) -> Array:
    """As eig_as_numpy."""
    values = eigvals(x)
    return _elementwise.real(values) if _real_if_all_are(_array(x), values) else values


def inv(x, /) -> Array:
    x = _matrix(x, "inv", square=True)
    return _compute("inv", "INVERSE", (x,), [(x.shape, _floating("inv", x.dtype))])[0]


def solve(x1, x2, /) -> Array:
    """X with x1 X = x2; an x2 of one axis is a vector."""
    session = next((x.session for x in (x1, x2) if isinstance(x, Array)), None)
    x1, x2 = (x if isinstance(x, Array) else wrap(node_of(x, session)) for x in (x1, x2))
    x1 = _matrix(x1, "solve", square=True)
    is_vector = x2.ndim == 1
    if not x2.ndim or x2.shape[0 if is_vector else -2] != x1.shape[-1]:
        raise _errors.ShapeMismatch(f"linalg.solve of {x1.shape} and {x2.shape}: as many rows are needed", reason="SHAPE_MISMATCH")
    batch = x1.shape[:-2] if is_vector else _inference.broadcast(x1.shape[:-2], x2.shape[:-2])
    shape = (*batch, *(x2.shape if is_vector else x2.shape[-2:]))
    return _compute("solve", "SOLVE", (x1, x2), [(shape, _floating("solve", x1.dtype, x2.dtype))])[0]


def _lu(x: Array, name: str):
    """The diagonal of the LU, and the sign of the row exchanges."""
    n = x.shape[-1]
    lu, pivots = _compute(name, "LU", (x,), [(x.shape, _floating(name, x.dtype)), (x.shape[:-1], _dtypes.int64)])
    exchanged = pivots != _creation.arange(1, n + 1, dtype=_dtypes.int64)
    return diagonal(lu), _reductions.prod(_elementwise.where(exchanged, -1, _creation.ones(x.shape[:-1], dtype=_dtypes.int64)), axis=-1)


def slogdet(x, /) -> SlogdetResult:
    x = _matrix(x, "slogdet", square=True)
    factors, sign = _lu(x, "slogdet")
    signs = _reductions.prod(_elementwise.sign(factors), axis=-1)
    logarithms = _reductions.sum(_elementwise.log(_elementwise.absolute(factors)), axis=-1)
    return SlogdetResult(sign.astype(factors.dtype) * signs, logarithms)


def det(x, /) -> Array:
    x = _matrix(x, "det", square=True)
    factors, sign = _lu(x, "det")
    sign = sign.astype(factors.dtype)
    product = _reductions.prod(factors, axis=-1)
    # A product whose parts leave the range may itself be within it.
    signs = _reductions.prod(_elementwise.sign(factors), axis=-1)
    logarithms = _reductions.sum(_elementwise.log(_elementwise.absolute(factors)), axis=-1)
    within = _elementwise.logical_and(_elementwise.isfinite(product), product != 0)
    return sign * _elementwise.where(within, product, signs * _elementwise.exp(logarithms))


# --- made of other operations ---

def diagonal(x, /, *, offset: int = 0) -> Array:
    """Read-only. A view of a contiguous array, else a copy."""
    x = _matrix(x, "diagonal")
    *batch, m, n = x.shape
    count = max(0, min(m, n - offset) if offset >= 0 else min(m + offset, n))
    start = offset if offset >= 0 else -offset * n
    flat = _manipulation.reshape(x, (*batch, m * n))
    taken = flat[..., start:start + (count - 1) * (n + 1) + 1:n + 1] if count else flat[..., 0:0]
    taken._node.freeze()
    return taken


def trace(x, /, *, offset: int = 0, dtype=None) -> Array:
    return _reductions.sum(diagonal(x, offset=offset), axis=-1, dtype=dtype)


def outer(x1, x2, /) -> Array:
    x1, x2 = _array(x1), _array(x2)
    if x1.ndim != 1 or x2.ndim != 1:
        raise _errors.ShapeMismatch(f"linalg.outer takes vectors, not {x1.shape} and {x2.shape}", reason="SHAPE_MISMATCH")
    return _manipulation.reshape(x1, (x1.shape[0], 1)) * x2


def cross(x1, x2, /, *, axis: int = -1) -> Array:
    """Of vectors of three elements along `axis`."""
    x1, x2 = _array(x1), _array(x2)
    if x1.shape[axis] != 3 or x2.shape[axis] != 3:
        raise _errors.ShapeMismatch(f"linalg.cross takes vectors of three elements, not {x1.shape} and {x2.shape}", reason="SHAPE_MISMATCH")
    a, b = (_manipulation.moveaxis(x, axis, -1) for x in (x1, x2))
    a, b = ([x[..., i] for i in range(3)] for x in (a, b))
    parts = [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]
    return _manipulation.moveaxis(_manipulation.stack(parts, axis=-1), -1, axis)


def matrix_power(x, n: int, /) -> Array:
    x = _matrix(x, "matrix_power", square=True)
    n = n.__index__()
    if n == 0:
        identity = _creation.eye(x.shape[-1], dtype=x.dtype)
        return _manipulation.copy(_manipulation.broadcast_to(identity, x.shape))
    if n < 0:
        x, n = inv(x), -n
    result = None
    while n:
        if n & 1:
            result = x if result is None else matmul(result, x)
        n >>= 1
        if n:
            x = matmul(x, x)
    return result


def _as_floating(x) -> Array:
    x = _array(x)
    return x.astype(_dtypes.float64) if x.dtype.kind in "biu" else x


def _tolerance(values: Array, shape, dtype, rtol) -> Array:
    """What counts as zero among the singular values of matrices of this shape."""
    if rtol is None:
        rtol = max(shape[-2:]) * float(np.finfo(dtype).eps)
    elif isinstance(rtol, Array):
        rtol = _manipulation.expand_dims(rtol, axis=-1)
    return _reductions.max(values, axis=-1, keepdims=True) * rtol


def matrix_rank(x, /, *, rtol=None) -> Array:
    """The number of singular values that count as other than zero. The rank of a vector is 1, or 0 if it is zero."""
    x = _array(x)
    if x.ndim < 2:
        return _reductions.any(x != 0).astype(_dtypes.int64)
    x = _matrix(x, "matrix_rank")
    if not min(x.shape[-2:]):
        return _creation.zeros(x.shape[:-2], dtype=_dtypes.int64)
    values = svdvals(x)
    return _reductions.count_nonzero(values > _tolerance(values, x.shape, values.dtype, rtol), axis=-1)


def pinv(x, /, *, rtol=None) -> Array:
    x = _matrix(x, "pinv")
    if not x.size:
        return _creation.zeros((*x.shape[:-2], x.shape[-1], x.shape[-2]), dtype=_floating("pinv", x.dtype))
    u, s, vh = svd(x, full_matrices=False)
    inverse = _elementwise.where(s > _tolerance(s, x.shape, s.dtype, rtol), 1 / s, 0)
    return matmul(_adjoint(vh) * _manipulation.expand_dims(inverse, axis=-2), _adjoint(u))


def _adjoint(x: Array) -> Array:
    return _manipulation.matrix_transpose(_elementwise.conjugate(x) if x.dtype.kind == "c" else x)


def lstsq(a, b, rcond: Optional[float] = None):
    """NumPy's: the solution of least squares, residuals, rank and singular values. Reads the rank: one round trip."""
    a, b = _matrix(a, "lstsq"), _array(b)
    if a.ndim != 2 or b.ndim not in (1, 2) or b.shape[0] != a.shape[0]:
        raise _errors.ShapeMismatch(f"linalg.lstsq takes one matrix and as many rows of right-hand sides, not {a.shape} and {b.shape}",
                                    reason="SHAPE_MISMATCH")
    m, n = a.shape
    dtype = _floating("lstsq", a.dtype, b.dtype)
    a, b = a.astype(dtype, copy=False), b.astype(dtype, copy=False)
    right = _manipulation.reshape(b, (m, 1)) if b.ndim == 1 else b
    u, values, vh = svd(a, full_matrices=False)
    if m and n:
        counts = values > _tolerance(values, a.shape, values.dtype, rcond)
        inverse = _elementwise.where(counts, 1 / values, 0)
        # One factor after another: the product of all would lose the contribution of small singular values.
        x = matmul(_adjoint(vh), _manipulation.expand_dims(inverse, axis=-1) * matmul(_adjoint(u), right))
        rank = int(_reductions.count_nonzero(counts))
    else:
        x, rank = _creation.zeros((n, right.shape[1]), dtype=dtype), 0
    if rank == n and m > n:
        residuals = _reductions.sum(_elementwise.square(_elementwise.absolute(right - matmul(a, x))), axis=0)
    else:
        residuals = _creation.zeros((0,), dtype=values.dtype)
    return _manipulation.reshape(x, (n,)) if b.ndim == 1 else x, residuals, rank, values


# --- norms ---

def vector_norm(x, /, *, axis=None, keepdims: bool = False, ord=2) -> Array:  # noqa: A002
    x = _as_floating(x)
    if ord == 2:
        return _reductions.norm(x, axis=axis, keepdims=keepdims)
    size = _elementwise.absolute(x)
    if ord == math.inf:
        return _reductions.max(size, axis=axis, keepdims=keepdims)
    if ord == -math.inf:
        return _reductions.min(size, axis=axis, keepdims=keepdims)
    if ord == 0:
        return _reductions.count_nonzero(x, axis=axis, keepdims=keepdims).astype(size.dtype)
    if ord == 1:
        return _reductions.sum(size, axis=axis, keepdims=keepdims)
    return _reductions.sum(size ** ord, axis=axis, keepdims=keepdims) ** (1 / ord)


def matrix_norm(x, /, *, keepdims: bool = False, ord="fro") -> Array:  # noqa: A002
    x = _as_floating(_matrix(x, "matrix_norm"))
    if ord == "fro":
        return _reductions.norm(x, axis=(-2, -1), keepdims=keepdims)
    if ord in ("nuc", 2, -2):
        values = svdvals(x)
        if ord == "nuc":
            result = _reductions.sum(values, axis=-1)
        elif not values.shape[-1]:
            result = _creation.zeros(values.shape[:-1], dtype=values.dtype)
        else:
            result = values[..., 0 if ord == 2 else -1]
    elif ord in (1, -1, math.inf, -math.inf):
        sums = _reductions.sum(_elementwise.absolute(x), axis=-2 if abs(ord) == 1 else -1)
        result = (_reductions.max if ord > 0 else _reductions.min)(sums, axis=-1)
    else:
        raise ValueError(f"no such norm of matrices: {ord}")
    return _manipulation.expand_dims(result, axis=(-2, -1)) if keepdims else result


def norm(x, ord=None, axis=None, keepdims: bool = False) -> Array:  # noqa: A002
    """NumPy's: of vectors along one axis, of matrices in two, of all elements without `ord` and `axis`."""
    x = _array(x)
    if axis is None:
        if ord is None:
            return vector_norm(x, keepdims=keepdims)
        axis = tuple(range(x.ndim))
    axes = _inference.normal_axes(axis, x.ndim)
    if len(axes) == 1:
        return vector_norm(x, axis=axes, keepdims=keepdims, ord=2 if ord is None else ord)
    if len(axes) != 2:
        raise ValueError("norms are of vectors and matrices: one axis or two")
    result = matrix_norm(_manipulation.moveaxis(x, axes, (-2, -1)), ord="fro" if ord is None else ord)
    return _manipulation.expand_dims(result, axis=axes) if keepdims else result


def cond(x, p=None) -> Array:
    """The norm times that of the inverse, or the ratio of singular values. inf for a singular matrix; nan only for a
    matrix with a nan."""
    x = _matrix(x, "cond", square=p not in (None, 2, -2))
    if not min(x.shape[-2:]):
        raise LinAlgError("linalg.cond of matrices without elements is not defined", reason="LINEAR_ALGEBRA")
    if p in (None, 2, -2):
        values = svdvals(x)
        ratio = values[..., -1] / values[..., 0] if p == -2 else values[..., 0] / values[..., -1]
    else:
        # A singular matrix has no inverse; another takes its place.
        singular = _reductions.any(_lu(x, "cond")[0] == 0, axis=-1)
        inverse = inv(
            _elementwise.where(
                _manipulation.expand_dims(singular, axis=(-2, -1)), _creation.eye(x.shape[-1], dtype=x.dtype), x
            )
        )
        ratio = _elementwise.where(singular, math.inf, matrix_norm(x, ord=p) * matrix_norm(inverse, ord=p))
    undefined = _elementwise.isnan(ratio) & ~_reductions.any(_elementwise.isnan(x), axis=(-2, -1))
    return _elementwise.where(undefined, math.inf, ratio)
