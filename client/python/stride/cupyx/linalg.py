"""cupyx.linalg: what CuPy has beside NumPy's linear algebra."""

from typing import Any

from stride import linalg as _linalg

__all__ = ["invh"]


def invh(a: Any):
    """The inverse of a Hermitian matrix, or of several."""
    return _linalg.inv(a)
