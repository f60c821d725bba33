"""CuPy's functions that take more than NumPy's: `blocking=` of those that copy from the host, `dtype=` of argmax and
argmin, and names that warn."""

import warnings
from typing import Any, Optional

import numpy as np

import stride as _stride
from stride import _conversion
from stride._array import Array


def array(
    obj: Any, dtype: Any = None, copy: Any = True, order: Optional[str] = "K", subok: bool = False, ndmin: int = 0, *,
    blocking: bool = False,
):  # fmt: skip
    """An array of the elements of an object. `blocking` changes nothing: elements of the host are taken before the
    call returns.

    Parameters
        obj: an array, or what becomes one.
        dtype: the element type; None for that of the elements.
        copy: whether an array is copied; None where it is needed.
        order: C, F, A or K; the elements' values do not depend on it.
        subok: accepted.
        ndmin: how many axes there are at least.
        blocking: accepted.
    Returns
        An array.
    Example
        >>> import stride.cupy as cp
        >>> cp.array([1, 2], dtype=cp.float32).tolist()
        [1.0, 2.0]
    """
    return _stride.array(obj, dtype, copy=copy, order=order, subok=subok, ndmin=ndmin)


def asanyarray(a: Any, dtype: Any = None, order: Optional[str] = None, *, blocking: bool = False):
    """An array: `a` itself where it is one of that type. `blocking` changes nothing.

    Parameters
        a: an array, or what becomes one.
        dtype: the element type; None for that of the elements.
        order: C, F, A or K; the elements' values do not depend on it.
        blocking: accepted.
    Returns
        An array.
    Example
        >>> import stride.cupy as cp
        >>> cp.asanyarray([1, 2]).tolist()
        [1, 2]
    """
    return _stride.asanyarray(a, dtype, order)


def ascontiguousarray(a: Any, dtype: Any = None):
    """A C-contiguous array with at least one axis: `a` itself where it is one.

    Parameters
        a: an array, or what becomes one.
        dtype: the element type; None for that of the elements.
    Returns
        An array.
    Example
        >>> import stride.cupy as cp
        >>> cp.ascontiguousarray([1, 2]).tolist()
        [1, 2]
    """
    return _stride.ascontiguousarray(a, dtype)


def asfortranarray(a: Any, dtype: Any = None):
    """An array with the elements of `a`. Arrays of the service are C-contiguous; `get(order="F")` gives Fortran's
    order on the host.

    Parameters
        a: an array, or what becomes one.
        dtype: the element type; None for that of the elements.
    Returns
        An array.
    Example
        >>> import stride.cupy as cp
        >>> cp.asfortranarray([1, 2]).tolist()
        [1, 2]
    """
    return _stride.asfortranarray(a, dtype)


def _placed(name: str, a: Any, axis: Optional[int], dtype: Any, out: Optional[Array], keepdims: bool):
    places = getattr(_stride, name)(a, axis, out, keepdims=keepdims)
    return places if dtype is None or out is not None else places.astype(np.dtype(dtype), copy=False)


def argmax(a: Any, axis: Optional[int] = None, dtype: Any = None, out: Any = None, keepdims: bool = False):
    """Where the greatest element along an axis is, in the type `dtype`.

    Parameters
        a: an array, or what becomes one.
        axis: the axis; None for all elements.
        dtype: the element type; None for that of the elements.
        out: an array that takes the result.
        keepdims: whether the axis stays, with one element.
    Returns
        An array of integers.
    Example
        >>> import stride.cupy as cp
        >>> cp.argmax(cp.array([1, 5, 2]), dtype=cp.int32).tolist()
        1
    """
    return _placed("argmax", a, axis, dtype, out, keepdims)


def argmin(a: Any, axis: Optional[int] = None, dtype: Any = None, out: Any = None, keepdims: bool = False):
    """Where the least element along an axis is, in the type `dtype`.

    Parameters
        a: an array, or what becomes one.
        axis: the axis; None for all elements.
        dtype: the element type; None for that of the elements.
        out: an array that takes the result.
        keepdims: whether the axis stays, with one element.
    Returns
        An array of integers.
    Example
        >>> import stride.cupy as cp
        >>> cp.argmin(cp.array([1, 5, 2]), dtype=cp.int32).tolist()
        0
    """
    return _placed("argmin", a, axis, dtype, out, keepdims)


def row_stack(tup: Any, *, dtype: Any = None, casting: str = "same_kind"):
    """`vstack` under its older name, which warns as NumPy's did.

    Parameters
        tup: arrays.
        dtype: the element type; None for that of the elements.
        casting: which casts to `dtype` are allowed.
    Returns
        An array.
    Example
        >>> import stride.cupy as cp
        >>> import warnings
        >>> with warnings.catch_warnings():
        ...     warnings.simplefilter("ignore")
        ...     cp.row_stack([cp.zeros(2), cp.ones(2)]).shape
        ...
        ...
        (2, 2)
    """
    warnings.warn("`row_stack` alias is deprecated. Use `cupy.vstack` directly.", DeprecationWarning, stacklevel=2)
    return _stride.vstack([_conversion.asarray(one) for one in tup], dtype=dtype, casting=casting)
