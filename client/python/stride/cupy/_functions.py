"""CuPy's functions that take more than NumPy's: `blocking=` of those that copy from the host, `dtype=` of argmax and
argmin, and names that warn."""

import warnings
from typing import Any, Optional

import numpy as np

import stride as _stride
from stride import _creation
from stride._array import Array


def array(
    obj: Any, dtype: Any = None, copy: Any = True, order: Optional[str] = "K", subok: bool = False, ndmin: int = 0, *,
    blocking: bool = False,
):  # fmt: skip
    """`stride.array`. `blocking` changes nothing: elements of the host are taken before the call returns."""
    return _stride.array(obj, dtype, copy=copy, order=order, subok=subok, ndmin=ndmin)


def asanyarray(a: Any, dtype: Any = None, order: Optional[str] = None, *, blocking: bool = False):
    """`stride.asanyarray`. `blocking` changes nothing."""
    return _stride.asanyarray(a, dtype, order)


def ascontiguousarray(a: Any, dtype: Any = None):
    """`stride.ascontiguousarray`."""
    return _stride.ascontiguousarray(a, dtype)


def asfortranarray(a: Any, dtype: Any = None):
    """`stride.asfortranarray`."""
    return _stride.asfortranarray(a, dtype)


def _placed(name: str, a: Any, axis: Optional[int], dtype: Any, out: Optional[Array], keepdims: bool):
    places = getattr(_stride, name)(a, axis, out, keepdims=keepdims)
    return places if dtype is None or out is not None else places.astype(np.dtype(dtype), copy=False)


def argmax(a: Any, axis: Optional[int] = None, dtype: Any = None, out: Any = None, keepdims: bool = False):
    """`stride.argmax`, in the type `dtype`."""
    return _placed("argmax", a, axis, dtype, out, keepdims)


def argmin(a: Any, axis: Optional[int] = None, dtype: Any = None, out: Any = None, keepdims: bool = False):
    """`stride.argmin`, in the type `dtype`."""
    return _placed("argmin", a, axis, dtype, out, keepdims)


def row_stack(tup: Any, *, dtype: Any = None, casting: str = "same_kind"):
    """`vstack`, by its older name, which warns as NumPy's did."""
    warnings.warn("`row_stack` alias is deprecated. Use `cupy.vstack` directly.", DeprecationWarning, stacklevel=2)
    return _stride.vstack([_creation.asarray(one) for one in tup], dtype=dtype, casting=casting)
