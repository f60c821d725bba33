"""`jax.typing`: names for annotations."""

from typing import Any

ArrayLike = Any
DTypeLike = Any
__all__ = ["ArrayLike", "DTypeLike"]
