"""NumPy's names of annotations: what arrays, element types and shapes are made from."""

from numpy.typing import ArrayLike, DTypeLike, NBitBase, NDArray

__all__ = ["ArrayLike", "DTypeLike", "NBitBase", "NDArray"]
