"""How the matrix decompositions are read backwards. Functions take the results and their cotangents and give the
cotangent of the matrix.

Here a cotangent g of a real or complex x means that the loss changes by Re tr(g^H dx). Cotangents of JAX are the
conjugates of these (`_gradient_rules`). A cotangent is None where the loss does not depend on that result."""

from typing import Optional

from stride import _assembly, _creation, _elementwise as el, _manipulation as mp, _triangles
from stride._array import Array

Cotangent = Optional[Array]


def adjoint(x: Array) -> Array:
    """The conjugate of the transposed matrices."""
    swapped = mp.permute_dims(x, (*range(x.ndim - 2), x.ndim - 1, x.ndim - 2))
    return el.conj(swapped) if x.dtype.kind == "c" else swapped


def _hermitian(x: Array) -> Array:
    return (x + adjoint(x)) * 0.5


def _rows(values: Array) -> Array:
    """One value for each row of a matrix."""
    return mp.expand_dims(values, axis=-1)


def _columns(values: Array) -> Array:
    """One value for each column of a matrix."""
    return mp.expand_dims(values, axis=-2)


def _eye(like: Array, n: int) -> Array:
    return _triangles.eye(n, dtype=like.dtype)


def _inverse_gaps(values: Array, dtype) -> Array:
    """1 / (values[j] - values[i]) at (i, j), and 0 on the diagonal."""
    eye = _triangles.eye(values.shape[-1], dtype=values.dtype)
    return ((1 - eye) / (_columns(values) - _rows(values) + eye)).astype(dtype)


def cholesky(lower: Array, by_lower: Array) -> Array:
    """Gradient of A = L L^H. Source: Murray, Differentiation of the Cholesky decomposition, 2016."""
    from stride import linalg, tril

    half = tril(adjoint(lower) @ by_lower) * (1 - 0.5 * _eye(lower, lower.shape[-1]))
    first = linalg.solve(adjoint(lower), half)
    return _hermitian(adjoint(linalg.solve(adjoint(lower), adjoint(first))))


def eigh(values: Array, vectors: Array, by_values: Cotangent, by_vectors: Cotangent) -> Array:
    """Gradient of the eigendecomposition of a Hermitian matrix. Source: Giles, Collected matrix derivative
    results, 2008, section 3.1."""
    inner = _creation.zeros(vectors.shape, dtype=vectors.dtype)
    if by_values is not None:
        inner = inner + _eye(vectors, values.shape[-1]) * _rows(by_values)
    if by_vectors is not None:
        inner = inner + (adjoint(vectors) @ by_vectors) * _inverse_gaps(values, vectors.dtype)
    return _hermitian(vectors @ inner @ adjoint(vectors))


def qr(q: Array, r: Array, by_q: Cotangent, by_r: Cotangent) -> Array:
    """Gradient of A = Q R, where Q has as many columns as A, or as A has rows. R has a real diagonal. Columns
    of A beyond the square part are Q times those of R. Source: Walter and Lehmann, Algorithmic
    differentiation of linear algebra functions, 2010."""
    from stride import linalg, triu

    k, n = q.shape[-1], r.shape[-1]
    by_q = _creation.zeros(q.shape, dtype=q.dtype) if by_q is None else by_q
    by_r = _creation.zeros(r.shape, dtype=r.dtype) if by_r is None else by_r
    square, by_square = r[..., :k], by_r[..., :k]
    if n > k:
        by_q = by_q + q @ r[..., k:] @ adjoint(by_r[..., k:])
    inner = by_square @ adjoint(square) - adjoint(q) @ by_q
    above = triu(inner, 1)
    diagonal = (el.real(inner) if inner.dtype.kind == "c" else inner) * _eye(inner, k)
    found = adjoint(linalg.solve(square, adjoint(by_q + q @ (above + adjoint(above) + diagonal))))
    return found if n == k else _assembly.concat([found, q @ by_r[..., k:]], axis=-1)


def svd(u: Array, s: Array, vh: Array, by_u: Cotangent, by_s: Cotangent, by_vh: Cotangent) -> Array:
    """Gradient of A = U S V^H, where U and V have as many columns as there are singular values. A phase that
    dA changes is changed in U, not in V. Source: Townsend, Differentiating the singular value decomposition,
    2016."""
    k = s.shape[-1]
    inner = _creation.zeros((*s.shape, k), dtype=u.dtype)
    outside = _creation.zeros((*s.shape[:-1], u.shape[-2], vh.shape[-1]), dtype=u.dtype)
    inverse = el.where(s == 0, 0, 1 / el.where(s == 0, 1, s))
    gaps = _inverse_gaps(s * s, u.dtype)
    if by_s is not None:
        inner = inner + _eye(inner, k) * _rows(by_s)
    if by_u is not None:
        turned = adjoint(u) @ by_u
        inner = inner + gaps * (turned - adjoint(turned)) * _columns(s)
        if u.dtype.kind == "c":
            inner = inner + _eye(inner, k) * (el.imag(turned) * _columns(inverse)) * 1j
        if u.shape[-2] > k:
            outside = outside + ((by_u - u @ turned) * _columns(inverse)) @ vh
    if by_vh is not None:
        v, by_v = adjoint(vh), adjoint(by_vh)
        turned = vh @ by_v
        inner = inner + _rows(s) * gaps * (turned - adjoint(turned))
        if vh.shape[-1] > k:
            outside = outside + (u * _columns(inverse)) @ adjoint(by_v - v @ turned)
    return u @ inner @ vh + outside
