"""Identity matrices, and triangles of matrices."""

import operator
from typing import Optional

from stride import _creation, _errors, _manipulation
from stride._array import Array, array_of
from stride._conversion import _check_memory_order, _on
from stride._creation import _INT32, _INT64, _dtype_or, _integers
from stride._elementwise import equal, greater_equal, logical_and, where

__all__ = ["eye", "identity", "tri", "tril", "triu"]


def eye(
    N: int,  # noqa: N803, NumPy's names
    M: Optional[int] = None,  # noqa: N803
    k: int = 0,
    dtype=None,
    order: Optional[str] = "C",
    *,
    device: Optional[str] = None,
    like=None,
) -> Array:
    """A matrix with ones on a diagonal and zeros elsewhere.

    Parameters
        N, M: how many rows and columns; as many columns as rows where M is not given.
        k: which diagonal; positive ones are above the main one.
        dtype: the element type, float64 where none is given.
        order: C or F: the order of memory.
        device: where it is; the session's device where none is given.
        like: an array of the service, which changes nothing.
    Returns
        An array of shape (N, M).
    Raises
        ValueError for a negative extent.
    Example
        >>> st.eye(2, 3, 1).tolist()
        [[0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
    """
    _check_memory_order(order, like)
    n_rows = operator.index(N)
    n_cols, k = n_rows if M is None else operator.index(M), operator.index(k)
    if n_rows < 0 or n_cols < 0:
        raise ValueError(f"negative dimensions are not allowed: {(n_rows, n_cols)}")
    k = min(max(k, -n_rows), n_cols)
    rows = _manipulation.expand_dims(_creation.arange(n_rows), axis=1)
    columns = _creation.arange(-k, n_cols - k)
    made = _on(equal(rows, columns).astype(_dtype_or(dtype, float)), device)
    return made if order == "C" else _manipulation.copied(made, order)


def identity(n: int, dtype=None, *, like=None) -> Array:
    """The identity matrix of n rows.

    Parameters
        n: the number of rows and of columns.
        dtype: the element type, float64 where none is given.
        like: an array of the service, which changes nothing.
    Returns
        An array of shape (N, M).
    Raises
        ValueError for a negative extent.
    Example
        >>> st.identity(2).tolist()
        [[1.0, 0.0], [0.0, 1.0]]
    """
    return eye(n, dtype=dtype, like=like)


def tri(N: int, M: Optional[int] = None, k: int = 0, dtype=float, *, like=None) -> Array:  # noqa: N803
    """A matrix with ones at and below a diagonal and zeros above.

    Parameters
        N: how many rows and columns; as many columns as rows where M is not given.
        M: how many rows and columns; as many columns as rows where M is not given.
        k: which diagonal; positive ones are above the main one.
        dtype: the element type, float64 where none is given.
        like: an array of the service, which changes nothing.
    Returns
        An array of shape (N, M).
    Raises
        ValueError for a negative extent.
    Example
        >>> st.tri(2, 3, 1, int).tolist()
        [[1, 1, 0], [1, 1, 1]]
    """
    return tril(_creation.ones((N, N if M is None else M), dtype, like=like), k)


def _triangle(x: Array, k: int, lower: bool) -> Array:
    x, k = array_of(x), operator.index(k)
    if x.ndim == 1:  # NumPy's way with one axis
        x = _manipulation.broadcast_to(x, (x.size, x.size))
    if x.ndim < 2:
        raise _errors.ShapeMismatch("a triangle is of a matrix or a stack of them", reason="SHAPE_MISMATCH")
    num_rows, num_columns = x.shape[-2:]
    k = min(max(k, -num_rows), num_columns)
    dtype = _INT32 if num_rows + num_columns < 2**31 else _INT64
    session = x._node.session
    rows = _integers(session, k, k + num_rows, dtype)[:, None]
    columns = _integers(session, 0, num_columns, dtype)
    keep = greater_equal(rows, columns) if lower else greater_equal(columns, rows)
    return logical_and(keep, x) if x.dtype.kind == "b" else where(keep, x, 0)


def tril(m, k: int = 0) -> Array:
    """The elements at and below a diagonal, with zeros above.

    Parameters
        m: a matrix or a stack of them; one axis is taken for a row, as by NumPy.
        k: which diagonal; positive ones are above the main one.
    Returns
        An array of `m`'s type and shape.
    Raises
        ShapeMismatch for an array without axes.
    Example
        >>> st.tril(st.ones((2, 2))).tolist()
        [[1.0, 0.0], [1.0, 1.0]]
    """
    return _triangle(m, k, True)


def triu(m, k: int = 0) -> Array:
    """The elements at and above a diagonal, with zeros below.

    Parameters
        m: a matrix or a stack of them; one axis is taken for a row, as by NumPy.
        k: which diagonal; positive ones are above the main one.
    Returns
        An array of `m`'s type and shape.
    Raises
        ShapeMismatch for an array without axes.
    Example
        >>> st.triu(st.ones((2, 2))).tolist()
        [[1.0, 1.0], [0.0, 1.0]]
    """
    return _triangle(m, k, False)
