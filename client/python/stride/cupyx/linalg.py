"""cupyx.linalg: CuPy's linear algebra that NumPy lacks."""

from typing import Any, Tuple

import numpy as _np

from stride import _manipulation, _triangles
from stride import linalg as _linalg
from stride._array import array_of as _array_of

__all__ = ["cho_solve", "invh"]


def cho_solve(c_and_lower: Tuple[Any, bool], b: Any, overwrite_b: bool = False, check_finite: bool = True):
    """The solution of A x = b by the Cholesky factor of A, or of several.

    Parameters
        c_and_lower: the factor, (..., n, n), and whether it is the lower one; its other triangle is not read.
        b: the right sides: (..., n) with one axis fewer than the factor, else (..., n, k).
        overwrite_b: accepted; `b` stays.
        check_finite: whether to look for infinities and NaN in `b`, which is a read.
    Returns
        An array of the shape of `b`.
    Raises
        ValueError for shapes that do not fit, and for elements that are not finite.
    Example
        >>> import stride.cupyx as cupyx
        >>> factor = st.linalg.cholesky(st.array([[4.0, 2.0], [2.0, 5.0]]))
        >>> cupyx.linalg.cho_solve((factor, True), st.array([8.0, 12.0])).tolist()
        [1.0, 2.0]
    """
    factor, lower = c_and_lower
    factor, b = _array_of(factor), _array_of(b)
    if factor.ndim < 2 or factor.shape[-1] != factor.shape[-2]:
        raise ValueError("The factored matrix c is not square.")
    is_vector = b.ndim == factor.ndim - 1
    right = b[..., None] if is_vector else b
    if right.ndim != factor.ndim or right.shape[:-1] != factor.shape[:-1]:
        raise ValueError(f"incompatible dimensions ({factor.shape} and {b.shape})")
    if check_finite and not bool(_np.isfinite(b).all()):
        raise ValueError("array must not contain infs or NaNs")
    factor = (_triangles.tril if lower else _triangles.triu)(factor)
    adjoint = _manipulation.matrix_transpose(factor)
    adjoint = adjoint.conj() if factor.dtype.kind == "c" else adjoint
    first, second = (factor, adjoint) if lower else (adjoint, factor)
    result = _linalg.solve(second, _linalg.solve(first, right))
    return result[..., 0] if is_vector else result


def invh(a: Any):
    """The inverse of a Hermitian matrix, or of several.

    Parameters
        a: an array whose last two axes are of one length.
    Returns
        An array.
    Example
        >>> import stride.cupyx as cupyx
        >>> cupyx.linalg.invh(st.array([[2.0, 0.0], [0.0, 4.0]])).tolist()
        [[0.5, 0.0], [0.0, 0.25]]
    """
    return _linalg.inv(a)
