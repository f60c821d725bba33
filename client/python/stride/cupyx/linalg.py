"""cupyx.linalg: what CuPy has beside NumPy's linear algebra."""

from typing import Any

from stride import linalg as _linalg

__all__ = ["invh"]


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
