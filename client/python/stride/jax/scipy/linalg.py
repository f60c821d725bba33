"""`jax.scipy.linalg`."""

from typing import Any, Tuple

from stride.jax import numpy as jnp
from stride.jax._array import Array

__all__ = [
    "block_diag", "cho_factor", "cho_solve", "cholesky", "det", "eigh", "inv", "solve", "solve_triangular", "svd",
]  # fmt: skip

det: Any = jnp.linalg.det
inv: Any = jnp.linalg.inv
svd: Any = jnp.linalg.svd


def solve(a: Any, b: Any, **_: Any) -> Array:
    """X with a X = b.

    Parameters
        a: a square matrix.
        b: a vector or a matrix.
    Returns
        An array.
    Example
        >>> from stride import jax
        >>> jax.scipy.linalg.solve(jax.numpy.eye(2), jax.numpy.ones(2)).tolist()
        [1.0, 1.0]
    """
    return jnp.linalg.solve(a, b)


def cholesky(a: Any, lower: bool = False, overwrite_a: bool = False, check_finite: bool = True) -> Array:
    """The Cholesky factor, upper unless `lower`.

    Parameters
        a: a positive definite matrix.
        lower: which triangle the factor has.
        overwrite_a, check_finite: change nothing.
    Returns
        An array.
    Example
        >>> from stride import jax
        >>> jax.scipy.linalg.cholesky(4 * jax.numpy.eye(1)).tolist()
        [[2.0]]
    """
    factor = jnp.linalg.cholesky(a)
    return factor if lower else jnp.swapaxes(factor, -1, -2)


def cho_factor(a: Any, lower: bool = False, overwrite_a: bool = False, check_finite: bool = True) -> Tuple[Array, bool]:
    """The factor that `cho_solve` takes.

    Parameters
        a: a positive definite matrix.
        lower: which triangle the factor has.
        overwrite_a, check_finite: change nothing.
    Returns
        (factor, lower).
    Example
        >>> from stride import jax
        >>> jax.scipy.linalg.cho_factor(4 * jax.numpy.eye(1))[1]
        False
    """
    return cholesky(a, lower), lower


def cho_solve(c_and_lower: Tuple[Any, bool], b: Any, overwrite_b: bool = False, check_finite: bool = True) -> Array:
    """X with A X = b, of a factor of A.

    Parameters
        c_and_lower: what `cho_factor` gave.
        b: a vector or a matrix.
        overwrite_b, check_finite: change nothing.
    Returns
        An array.
    Example
        >>> from stride import jax
        >>> factor = jax.scipy.linalg.cho_factor(4 * jax.numpy.eye(1))
        >>> jax.scipy.linalg.cho_solve(factor, jax.numpy.ones(1)).tolist()
        [0.25]
    """
    factor, is_lower = c_and_lower
    first = factor if is_lower else jnp.swapaxes(factor, -1, -2)
    return jnp.linalg.solve(jnp.swapaxes(first, -1, -2), jnp.linalg.solve(first, b))


def solve_triangular(
    a: Any, b: Any, trans: Any = 0, lower: bool = False, unit_diagonal: bool = False, overwrite_b: bool = False,
    check_finite: bool = True,
) -> Array:
    """X with a X = b, of one triangle of `a`.

    Parameters
        a: a square matrix.
        b: a vector or a matrix.
        trans: 0, 1 for the transpose, 2 for the conjugate transpose; or N, T, C.
        lower: which triangle.
        unit_diagonal: whether the diagonal is taken for ones.
        overwrite_b, check_finite: change nothing.
    Returns
        An array.
    Example
        >>> from stride import jax
        >>> jax.scipy.linalg.solve_triangular(2 * jax.numpy.eye(1), jax.numpy.ones(1)).tolist()
        [0.5]
    """
    a = jnp.asarray(a)
    kept = jnp.tril(a, -1 if unit_diagonal else 0) if lower else jnp.triu(a, 1 if unit_diagonal else 0)
    if unit_diagonal:
        kept = kept + jnp.eye(a.shape[-1], dtype=a.dtype)
    if trans in (1, 2, "T", "C"):
        kept = jnp.swapaxes(kept, -1, -2)
        kept = jnp.conj(kept) if trans in (2, "C") else kept
    return jnp.linalg.solve(kept, b)


def eigh(a: Any, b: Any = None, lower: bool = True, eigvals_only: bool = False, **_: Any) -> Any:
    """Eigenvalues and eigenvectors of a Hermitian matrix.

    Parameters
        a: the matrix.
        b: must be None.
        lower: which triangle is read.
        eigvals_only: whether the values alone are returned.
    Returns
        (values, vectors), or values.
    Example
        >>> from stride import jax
        >>> jax.scipy.linalg.eigh(jax.numpy.eye(2), eigvals_only=True).tolist()
        [1.0, 1.0]
    """
    if b is not None:
        raise NotImplementedError("stride.jax.scipy.linalg.eigh has no second matrix")
    return jnp.linalg.eigvalsh(a, "L" if lower else "U") if eigvals_only else jnp.linalg.eigh(a, "L" if lower else "U")


def block_diag(*arrs: Any) -> Array:
    """Matrices along the diagonal of one.

    Parameters
        arrs: the matrices.
    Returns
        An array.
    Example
        >>> from stride import jax
        >>> jax.scipy.linalg.block_diag(jax.numpy.ones((1, 1)), jax.numpy.ones((1, 2))).tolist()
        [[1.0, 0.0, 0.0], [0.0, 1.0, 1.0]]
    """
    blocks = [jnp.atleast_2d(jnp.asarray(one)) for one in arrs]
    width, before, rows = sum(one.shape[1] for one in blocks), 0, []
    for one in blocks:
        rows.append(jnp.pad(one, ((0, 0), (before, width - before - one.shape[1]))))
        before += one.shape[1]
    return jnp.concatenate(rows, axis=0)
