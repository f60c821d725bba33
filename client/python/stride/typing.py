"""NumPy's names of annotations: what arrays, element types and shapes are made from."""

from numpy.typing import ArrayLike, DTypeLike, NDArray

__all__ = ["ArrayLike", "DTypeLike", "NDArray"]
