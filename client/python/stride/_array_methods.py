"""The methods that NumPy's arrays have beside the standard's: each is a function of the namespace."""

import operator
from typing import TYPE_CHECKING, Any, Optional, Tuple

if TYPE_CHECKING:
    from stride._array import Array


class NumpyMethods:
    """A part of Array."""

    __slots__ = ()

    # --- reductions and running results ---

    def prod(self, axis=None, *, dtype=None, keepdims: bool = False) -> "Array":
        return _stride().prod(self, axis=axis, dtype=dtype, keepdims=keepdims)

    def any(self, axis=None, *, keepdims: bool = False) -> "Array":
        return _stride().any(self, axis=axis, keepdims=keepdims)

    def all(self, axis=None, *, keepdims: bool = False) -> "Array":
        return _stride().all(self, axis=axis, keepdims=keepdims)

    def std(self, axis=None, *, ddof: float = 0, keepdims: bool = False) -> "Array":
        return _stride().std(self, axis=axis, correction=ddof, keepdims=keepdims)

    def var(self, axis=None, *, ddof: float = 0, keepdims: bool = False) -> "Array":
        return _stride().var(self, axis=axis, correction=ddof, keepdims=keepdims)

    def argmin(self, axis: Optional[int] = None, *, keepdims: bool = False) -> "Array":
        return _stride().argmin(self, axis=axis, keepdims=keepdims)

    def argmax(self, axis: Optional[int] = None, *, keepdims: bool = False) -> "Array":
        return _stride().argmax(self, axis=axis, keepdims=keepdims)

    def cumsum(self, axis: Optional[int] = None, *, dtype=None) -> "Array":
        return _running(_stride().cumulative_sum, self, axis, dtype)

    def cumprod(self, axis: Optional[int] = None, *, dtype=None) -> "Array":
        return _running(_stride().cumulative_prod, self, axis, dtype)

    # --- shapes ---

    def ravel(self) -> "Array":
        """A view where there is one, else a copy."""
        return _stride().reshape(self, (self.size,))  # type: ignore[attr-defined]

    def flatten(self) -> "Array":
        return _stride().reshape(self, (self.size,), copy=True)  # type: ignore[attr-defined]

    def transpose(self, *axes) -> "Array":
        """All axes reversed where none are named."""
        if len(axes) == 1 and (axes[0] is None or isinstance(axes[0], (tuple, list))):
            axes = axes[0] or ()
        return _stride().permute_dims(self, axes or range(self.ndim - 1, -1, -1))  # type: ignore[attr-defined]

    def swapaxes(self, axis1: int, axis2: int) -> "Array":
        from stride import _inference

        axis1, axis2 = (_inference.normal_axis(one, self.ndim) for one in (axis1, axis2))  # type: ignore[attr-defined]
        order = list(range(self.ndim))  # type: ignore[attr-defined]
        order[axis1], order[axis2] = order[axis2], order[axis1]
        return _stride().permute_dims(self, order)

    def squeeze(self, axis=None) -> "Array":
        return _stride().squeeze(self, axis=axis)

    def repeat(self, repeats, axis: Optional[int] = None) -> "Array":
        return _stride().repeat(self, repeats, axis=axis)

    # --- elements ---

    def take(self, indices, axis: Optional[int] = None, *, mode: str = "raise") -> "Array":
        return _stride().take(self.ravel() if axis is None else self, indices, axis=axis or 0, mode=mode)

    def nonzero(self) -> Tuple["Array", ...]:
        return _stride().nonzero(self)

    def sort(self, axis: int = -1) -> None:
        """In place."""
        axis = operator.index(axis)
        self[...] = _stride().sort(self, axis=axis)  # type: ignore[index]

    def argsort(self, axis: int = -1) -> "Array":
        return _stride().argsort(self, axis=axis)

    def searchsorted(self, values, side: str = "left", sorter=None) -> "Array":
        return _stride().searchsorted(self, values, side=side, sorter=sorter)

    def fill(self, value) -> None:
        """With one value."""
        from stride import _indexing

        self[...] = _indexing.element(value, self)  # type: ignore[index,arg-type]

    def clip(self, min=None, max=None) -> "Array":  # noqa: A002
        return _stride().clip(self, min, max)

    def round(self, decimals: int = 0) -> "Array":
        import numpy

        return numpy.round(self, decimals)  # type: ignore[call-overload]

    def conj(self) -> "Array":
        return _stride().conj(self)

    conjugate = conj

    def dot(self, other: Any) -> "Array":
        return _stride().dot(self, other)


def _running(function, x, axis, dtype):
    return function(x.ravel(), dtype=dtype) if axis is None else function(x, axis=axis, dtype=dtype)


def _stride():
    import stride

    return stride
