"""The linear algebra that the service computes: decompositions, inverses and solutions for matrices in the
last two axes."""

import functools
import math
import warnings
from typing import NamedTuple

import numpy as np

from stride import (
    _assembly, _casts, _creation, _dtypes, _elementwise, _errors, _host_functions, _inference, _manipulation, _ordering,
    _reductions, _routines,
)
from stride._array import Array, node_of, wrap
from stride._graph import record_several
from stride._linear_algebra import matmul
from stride.v1 import operation_pb2 as pb


class EigResult(NamedTuple):
    """Eigenvalues and eigenvectors of a matrix, which `linalg.eig` returns.

    Parameters
        eigenvalues: an array (..., n) of complex numbers.
        eigenvectors: an array (..., n, n), whose columns are the vectors.
    Example
        >>> st.linalg.eig(st.eye(2)).eigenvalues.real.tolist()
        [1.0, 1.0]
    """

    eigenvalues: Array
    eigenvectors: Array


class EighResult(NamedTuple):
    """Eigenvalues and eigenvectors of a Hermitian matrix, which `linalg.eigh` returns.

    Parameters
        eigenvalues: an array (..., n) of real numbers in rising order.
        eigenvectors: an array (..., n, n), whose columns are the vectors.
    Example
        >>> st.linalg.eigh(st.eye(2)).eigenvalues.tolist()
        [1.0, 1.0]
    """

    eigenvalues: Array
    eigenvectors: Array


class QRResult(NamedTuple):
    """The factors of a matrix, which `linalg.qr` returns.

    Parameters
        Q: an array (..., m, k) with orthonormal columns.
        R: an array (..., k, n) with zeros below the diagonal.
    Example
        >>> st.linalg.qr(st.ones((3, 2))).Q.shape
        (3, 2)
    """

    Q: Array
    R: Array


class SlogdetResult(NamedTuple):
    """Sign and logarithm of a determinant, which `linalg.slogdet` returns.

    Parameters
        sign: an array of numbers with the absolute value 1, or 0 for a singular matrix.
        logabsdet: an array of logarithms of absolute values.
    Example
        >>> float(st.linalg.slogdet(st.eye(2)).sign)
        1.0
    """

    sign: Array
    logabsdet: Array


class SVDResult(NamedTuple):
    """The singular value decomposition of a matrix, which `linalg.svd` returns.

    Parameters
        U: an array (..., m, m), or (..., m, k) without `full_matrices`.
        S: an array (..., k) of the singular values, the greatest first.
        Vh: an array (..., n, n), or (..., k, n) without `full_matrices`.
    Example
        >>> st.linalg.svd(2 * st.eye(2)).S.tolist()
        [2.0, 2.0]
    """

    U: Array
    S: Array
    Vh: Array


class NotMatrices(_errors.ShapeMismatch, _errors.LinAlgError):
    """Shapes that a function of matrices does not take, where NumPy raises LinAlgError."""

    def __init__(self, message: str, **details):
        super().__init__(message, **{"reason": "SHAPE_MISMATCH", **details})


def array_of(x) -> Array:
    return x if isinstance(x, Array) else wrap(node_of(x))


def together(x1, x2):
    """Arrays of one session."""
    session = next((x.session for x in (x1, x2) if isinstance(x, Array)), None)
    return tuple(x if isinstance(x, Array) else wrap(node_of(x, session)) for x in (x1, x2))


def floating(name: str, *dtypes) -> np.dtype:
    """The type of the computation: integers are taken as float64."""
    dtype = _inference.promote(*dtypes)
    if dtype.kind in "biu":
        return _dtypes.float64
    if dtype == _dtypes.float16:
        raise _errors.DataTypeMismatch(
            f"linalg.{name}: float16 is unsupported in linalg, which computes in float32, float64, complex64 and "
            "complex128; convert the array first"
        )
    return dtype


def real_type(dtype: np.dtype) -> np.dtype:
    return {_dtypes.complex64: _dtypes.float32, _dtypes.complex128: _dtypes.float64}.get(dtype, dtype)


def matrix(x, name: str, square: bool = False) -> Array:
    x = array_of(x)
    if x.ndim < 2:
        raise NotMatrices(f"linalg.{name} takes a matrix or a stack of them, not {x.ndim} axes")
    if square and x.shape[-1] != x.shape[-2]:
        raise NotMatrices(f"linalg.{name} takes square matrices, not {x.shape[-2:]}")
    return x


def adjoint(x: Array) -> Array:
    return _manipulation.matrix_transpose(_elementwise.conjugate(x) if x.dtype.kind == "c" else x)


def diagonals(x: Array, offset: int) -> Array:
    """For reading. A view of an array without gaps, else a copy."""
    *batch, m, n = x.shape
    count = max(0, min(m, n - offset) if offset >= 0 else min(m + offset, n))
    start = offset if offset >= 0 else -offset * n
    flat = _manipulation.reshape(x, (*batch, m * n))
    taken = flat[..., start : start + (count - 1) * (n + 1) + 1 : n + 1] if count else flat[..., 0:0]
    taken._node.freeze()
    return taken


def compute(function: str, arrays, results, **flags) -> list:
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


def cholesky(a, /, *, upper: bool = False) -> Array:
    """The triangle L with a = L L^H.

    Parameters: `a`, Hermitian and positive definite matrices, (..., n, n), of which the lower triangle is read; with
    `upper`, U with a = U^H U. Returns an array of this shape, of float32, float64, complex64 or complex128. Raises
    LinAlgError for matrices that are not square; where one is not positive definite, when the result is read.

    >>> stride.linalg.cholesky(stride.eye(2) * 4).tolist()
    [[2.0, 0.0], [0.0, 2.0]]
    """
    a = matrix(a, "cholesky", square=True)
    return compute("CHOLESKY", (a,), [(a.shape, floating("cholesky", a.dtype))], upper=bool(upper))[0]


_OLD_MODES = {"f": "full", "full": "full", "e": "economic", "economic": "economic"}


def qr(a, mode: str = "reduced"):
    """Orthonormal columns Q and the upper triangle R with a = Q R.

    Parameters: `a`, matrices (..., m, n); `mode`: `reduced` gives Q (..., m, k) and R (..., k, n) with k = min(m, n),
    `complete` Q (..., m, m) and R (..., m, n), `r` R alone, `raw` LAPACK's Householder vectors (..., n, m) and their
    factors (..., k), one column after another. Returns QRResult(Q, R), R or a tuple. Raises ValueError for another
    mode, LinAlgError for arrays with fewer than two axes. NumPy's deprecated `full` and `economic` are as NumPy has
    them.

    >>> stride.linalg.qr(stride.ones((3, 2))).R.shape
    (2, 2)
    """
    if mode in _OLD_MODES:
        old = _OLD_MODES[mode]
        warnings.warn(
            f"qr's mode {old!r} is deprecated: use {'reduced' if old == 'full' else 'raw'}",
            DeprecationWarning,
            stacklevel=2,
        )
        mode = "reduced" if old == "full" else old
    if mode not in ("reduced", "complete", "r", "raw", "economic"):
        raise ValueError(f"mode is reduced, complete, r or raw, not {mode!r}")
    a = matrix(a, "qr")
    dtype = floating("qr", a.dtype)
    if mode in ("raw", "economic"):
        packed, factors = _householder(a.astype(dtype))
        return packed if mode == "economic" else (_manipulation.matrix_transpose(packed), factors)
    *batch, m, n = a.shape
    k = m if mode == "complete" else min(m, n)
    results = [((*batch, m, k), dtype), ((*batch, k, n), dtype)]
    if mode == "r":
        return compute("QR", (a,), results[1:], values_only=True)[0]
    return QRResult(*compute("QR", (a,), results, full=mode == "complete"))


def _householder(a: Array):
    """LAPACK's packed form: R above, below it the reflections' vectors without their leading ones, and their
    factors."""
    *batch, m, n = a.shape
    k = min(m, n)
    factors = _creation.zeros((*batch, k), dtype=a.dtype)
    for j in range(k):
        head, below = a[..., j, j], a[..., j + 1 :, j]
        rest = _reductions.norm(below, axis=-1)
        size = _elementwise.sqrt(_elementwise.square(_elementwise.absolute(head)) + _elementwise.square(rest))
        real = _elementwise.real(head)
        # Without anything below a real number is as it should be: there is no reflection.
        is_plain = _elementwise.logical_and(rest == 0, _elementwise.imag(head) == 0)
        end = _elementwise.where(is_plain, real, _elementwise.where(_elementwise.signbit(real), size, -size))
        factor = _elementwise.where(is_plain, 0, (end - head) / _elementwise.where(is_plain, 1, end))
        scale = _elementwise.where(is_plain, 1, head - end)
        vector = below / _manipulation.expand_dims(scale, axis=-1)
        factors[..., j] = factor
        a[..., j, j] = end.astype(a.dtype)
        if j + 1 < m:
            a[..., j + 1 :, j] = vector
        if j + 1 < n:
            one = _creation.ones((*batch, 1), dtype=a.dtype)
            whole = _manipulation.expand_dims(_assembly.concat([one, vector], axis=-1), axis=-1)
            part = a[..., j:, j + 1 :]
            conjugate = _elementwise.conjugate(factor) if a.dtype.kind == "c" else factor
            a[..., j:, j + 1 :] = part - _manipulation.expand_dims(conjugate, axis=(-2, -1)) * matmul(
                whole, matmul(adjoint(whole), part)
            )
    return a, factors


def svd(a, full_matrices: bool = True, compute_uv: bool = True, hermitian: bool = False):
    """The singular value decomposition a = U diag(S) Vh.

    Parameters: `a`, matrices (..., m, n); with `full_matrices` U is (..., m, m) and Vh (..., n, n), else (..., m, k)
    and (..., k, n), k = min(m, n); without `compute_uv` S alone is computed; `hermitian` says that the matrices are,
    which is faster. Returns SVDResult(U, S, Vh), S of real numbers from large to small, or S. Raises LinAlgError for
    arrays with fewer than two axes; where a matrix has a NaN, when a result is read.

    >>> stride.linalg.svd(stride.eye(2) * 3, compute_uv=False).tolist()
    [3.0, 3.0]
    """
    a = matrix(a, "svd", square=hermitian)
    if hermitian:
        return _svd_of_hermitian(a) if compute_uv else _falling(_elementwise.absolute(eigvalsh(a)))
    if not compute_uv:
        return svdvals(a)
    dtype = floating("svd", a.dtype)
    *batch, m, n = a.shape
    k = min(m, n)
    results = [
        ((*batch, m, m if full_matrices else k), dtype),
        ((*batch, k), real_type(dtype)),
        ((*batch, n if full_matrices else k, n), dtype),
    ]
    return SVDResult(*compute("SVD", (a,), results, full=bool(full_matrices)))


def _falling(values: Array) -> Array:
    return _manipulation.flip(_ordering.sort(values), axis=-1)


def _svd_of_hermitian(a: Array) -> SVDResult:
    """Eigenvectors by falling size of eigenvalues, whose signs one side takes."""
    values, vectors = eigh(a)
    order = _manipulation.flip(_ordering.argsort(_elementwise.absolute(values)), axis=-1)
    values = _routines.take_along_axis(values, order, axis=-1)
    columns = _manipulation.broadcast_to(_manipulation.expand_dims(order, axis=-2), vectors.shape)
    vectors = _routines.take_along_axis(vectors, columns, axis=-1)
    # Columns of zeros also have one, so that the rows stay of length 1.
    signs = _manipulation.expand_dims(_elementwise.copysign(1, values), axis=-2)
    return SVDResult(vectors, _elementwise.absolute(values), adjoint(vectors * signs))


def svdvals(x, /) -> Array:
    """The singular values, from large to small.

    Parameters: `x`, matrices (..., m, n). Returns an array of real numbers, (..., min(m, n)). Raises LinAlgError for
    arrays with fewer than two axes.

    >>> stride.linalg.svdvals(stride.eye(2) * 3).tolist()
    [3.0, 3.0]
    """
    x = matrix(x, "svdvals")
    shape = (*x.shape[:-2], min(x.shape[-2:]))
    return compute("SVD", (x,), [(shape, real_type(floating("svdvals", x.dtype)))], values_only=True)[0]


def _uplo(which: str) -> bool:
    if which not in ("L", "U", "l", "u"):
        raise ValueError(f"UPLO is L or U, not {which!r}")
    return which in "Uu"


def eigh(a, UPLO: str = "L") -> EighResult:  # noqa: N803, NumPy's name
    """Eigenvalues and eigenvectors of Hermitian matrices.

    Parameters: `a`, matrices (..., n, n); `UPLO`, the triangle that is read, L or U. Returns EighResult(eigenvalues,
    eigenvectors): real numbers (..., n) from small to large, and the vectors (..., n, n) as columns. Raises LinAlgError
    for matrices that are not square, ValueError for another triangle.

    >>> stride.linalg.eigh(stride.eye(2) * 3).eigenvalues.tolist()
    [3.0, 3.0]
    """
    a = matrix(a, "eigh", square=True)
    dtype = floating("eigh", a.dtype)
    results = [(a.shape[:-1], real_type(dtype)), (a.shape, dtype)]
    return EighResult(*compute("EIGH", (a,), results, upper=_uplo(UPLO)))


def eigvalsh(a, UPLO: str = "L") -> Array:  # noqa: N803
    """The eigenvalues of Hermitian matrices.

    Parameters: `a`, matrices (..., n, n); `UPLO`, the triangle that is read, L or U. Returns real numbers (..., n) from
    small to large. Raises LinAlgError for matrices that are not square, ValueError for another triangle.

    >>> stride.linalg.eigvalsh(stride.eye(2) * 3).tolist()
    [3.0, 3.0]
    """
    a = matrix(a, "eigvalsh", square=True)
    dtype = real_type(floating("eigvalsh", a.dtype))
    return compute("EIGH", (a,), [(a.shape[:-1], dtype)], upper=_uplo(UPLO), values_only=True)[0]


def _complex(dtype: np.dtype) -> np.dtype:
    return _dtypes.complex64 if dtype in (_dtypes.float32, _dtypes.complex64) else _dtypes.complex128


@functools.lru_cache(maxsize=None)
def _numpy_gives_real() -> bool:
    """Whether numpy.linalg.eig gives real numbers where all eigenvalues are; NumPy from 2.5 on gives complex ones."""
    return np.linalg.eigvals(np.ones((1, 1))).dtype.kind == "f"


def _real_if_all_are(x: Array, values: Array) -> bool:
    """True if the results become real. Reads the values in one round trip. A traced function
    cannot read values and keeps complex numbers."""
    if x.dtype.kind == "c" or x._node.session._is_trace or values.session._is_trace:
        return False
    return not bool(_reductions.any(_elementwise.imag(values) != 0))


def complex_eig(a) -> EigResult:
    """`eig` as the array API has it: always of complex numbers."""
    a = matrix(a, "eig", square=True)
    dtype = _complex(floating("eig", a.dtype))
    return EigResult(*compute("EIG", (a,), [(a.shape[:-1], dtype), (a.shape, dtype)]))


def eig(a) -> EigResult:
    """Eigenvalues and right eigenvectors of any square matrices. Reads the eigenvalues of real matrices: the results
    are real where all imaginary parts are zero, as the installed NumPy's are. They are always complex in `jit` and
    `vmap`, and in the standard's namespaces (`x.__array_namespace__(api_version="2025.12")`).

    Parameters: `a`, matrices (..., n, n). Returns EigResult(eigenvalues, eigenvectors): (..., n) in no order, and the
    vectors (..., n, n) as columns. Raises LinAlgError for matrices that are not square.

    >>> stride.linalg.eig(stride.eye(2)).eigenvalues.real.tolist()
    [1.0, 1.0]
    """
    values, vectors = complex_eig(a)
    if _numpy_gives_real() and _real_if_all_are(array_of(a), values):
        values, vectors = _real_part(values), _real_part(vectors)
    return EigResult(values, vectors)


def complex_eigvals(a) -> Array:
    """`eigvals` as the array API has it: always complex numbers."""
    a = matrix(a, "eigvals", square=True)
    dtype = _complex(floating("eigvals", a.dtype))
    return compute("EIG", (a,), [(a.shape[:-1], dtype)], values_only=True)[0]


def eigvals(a) -> Array:
    """The eigenvalues of any square matrices, real or complex as those of `eig`, which it reads as well.

    Parameters: `a`, matrices (..., n, n). Returns (..., n), in no order. Raises LinAlgError for matrices that are not
    square.

    >>> stride.linalg.eigvals(stride.eye(2)).real.tolist()
    [1.0, 1.0]
    """
    return real_eigvals(a) if _numpy_gives_real() else complex_eigvals(a)


def real_eigvals(a) -> Array:
    """Real eigenvalues where all of a real matrix are. Reads them."""
    values = complex_eigvals(a)
    return _real_part(values) if _real_if_all_are(array_of(a), values) else values


def _real_part(values: Array) -> Array:
    """A new array, of which the elements lie side by side as NumPy's do."""
    return _casts.copy(_elementwise.real(values))


def inv(a) -> Array:
    """The inverse.

    Parameters: `a`, matrices (..., n, n). Returns an array of this shape. Raises LinAlgError for matrices that are not
    square; where one is singular, when the result is read.

    >>> stride.linalg.inv(stride.eye(2) * 2).tolist()
    [[0.5, 0.0], [0.0, 0.5]]
    """
    a = matrix(a, "inv", square=True)
    return compute("INVERSE", (a,), [(a.shape, floating("inv", a.dtype))])[0]


def solve(a, b) -> Array:
    """The solution x of a x = b.

    Parameters: `a`, matrices (..., n, n); `b`, a vector (n,), or matrices (..., n, k). Returns an array (..., n) of a
    vector, (..., n, k) else. Raises LinAlgError for matrices that are not square, ShapeMismatch for other numbers of
    rows; where a matrix is singular, LinAlgError when the result is read.

    >>> stride.linalg.solve(stride.eye(2) * 2, stride.ones(2)).tolist()
    [0.5, 0.5]
    """
    a, b = together(a, b)
    a = matrix(a, "solve", square=True)
    is_vector = b.ndim == 1
    if not b.ndim or b.shape[0 if is_vector else -2] != a.shape[-1]:
        raise _errors.ShapeMismatch(
            f"linalg.solve of {a.shape} and {b.shape}: as many rows are needed", reason="SHAPE_MISMATCH"
        )
    batch = a.shape[:-2] if is_vector else _inference.broadcast(a.shape[:-2], b.shape[:-2])
    shape = (*batch, *(b.shape if is_vector else b.shape[-2:]))
    return compute("SOLVE", (a, b), [(shape, floating("solve", a.dtype, b.dtype))])[0]


def lu(x: Array, name: str):
    """The diagonal of the LU, and the sign of the row exchanges."""
    n = x.shape[-1]
    factors, pivots = compute("LU", (x,), [(x.shape, floating(name, x.dtype)), (x.shape[:-1], _dtypes.int64)])
    exchanged = pivots != _creation.arange(1, n + 1, dtype=_dtypes.int64)
    return diagonals(factors, 0), _reductions.prod(
        _elementwise.where(exchanged, -1, _creation.ones(x.shape[:-1], dtype=_dtypes.int64)), axis=-1
    )


def slogdet(a) -> SlogdetResult:
    """The sign and the logarithm of the size of the determinant.

    Parameters: `a`, matrices (..., n, n). Returns SlogdetResult(sign, logabsdet) of shape (...): of a singular matrix 0
    and -inf. Raises LinAlgError for matrices that are not square.

    >>> float(stride.linalg.slogdet(stride.eye(2)).logabsdet)
    0.0
    """
    a = matrix(a, "slogdet", square=True)
    factors, sign = lu(a, "slogdet")
    signs = _reductions.prod(_elementwise.sign(factors), axis=-1)
    logarithms = _reductions.sum(_elementwise.log(_elementwise.absolute(factors)), axis=-1)
    return SlogdetResult(sign.astype(factors.dtype) * signs, logarithms)


def det(a) -> Array:
    """The determinant.

    Parameters: `a`, matrices (..., n, n). Returns an array of shape (...). Raises LinAlgError for matrices that are not
    square.

    >>> float(stride.linalg.det(stride.eye(2) * 2))
    4.0
    """
    a = matrix(a, "det", square=True)
    factors, sign = lu(a, "det")
    sign = sign.astype(factors.dtype)
    product = _reductions.prod(factors, axis=-1)
    # A product whose parts leave the range may itself be within it.
    signs = _reductions.prod(_elementwise.sign(factors), axis=-1)
    logarithms = _reductions.sum(_elementwise.log(_elementwise.absolute(factors)), axis=-1)
    within = _elementwise.logical_and(_elementwise.isfinite(product), product != 0)
    return sign * _elementwise.where(within, product, signs * _elementwise.exp(logarithms))


_host_functions.offer(globals(), "linalg")
