"""JAX's reductions, scans and sorts along axes, which promote nothing."""

from typing import Any, Callable, Optional, Sequence

import numpy as np

from stride import _manipulation, _ordering, _reductions, _routines, _ufunc_methods
from stride._array import Array
from stride.lax._kinds import _kind_text
from stride.lax._operators import _array, _kind_of

__all__ = [
    "argmax", "argmin", "cumlogsumexp", "cummax", "cummin", "cumprod", "cumsum", "reduce_and", "reduce_max",
    "reduce_min", "reduce_or", "reduce_prod", "reduce_sum", "reduce_xor", "sort", "sort_key_val", "top_k",
]


def _axes(name: str, x: Array, axes: Sequence[int]) -> tuple:
    axes = tuple(axes)
    if len(set(axes)) != len(axes) or any(not 0 <= one < x.ndim for one in axes):
        raise ValueError(f"lax.{name}: axes are different numbers from 0 to {x.ndim - 1}, not {axes}")
    return axes


def _axis(name: str, x: Array, axis: int) -> int:
    if not 0 <= axis < x.ndim:
        raise ValueError(f"lax.{name}: the axis is a number from 0 to {x.ndim - 1}, not {axis}")
    return axis


_ALONG_AXES = """{summary}

    Parameters
        operand: an array.
        axes: the axes, which the result lacks.
    Returns
        An array.
    Raises
        TypeError for elements of another type; ValueError for axes that the operand lacks.
    Example
        >>> stride.lax.{name}(st.ones((2, 3), dtype={dtype}), (1,)).shape
        (2,)
    """
_ALONG_AXIS = """{summary}

    Parameters
        operand: an array.
        axis: the axis.
        reverse: whether to go from the last element to the first.
    Returns
        An array of the operand's shape.
    Raises
        TypeError for elements of another type; ValueError for an axis that the operand lacks.
    Example
        >>> stride.lax.{name}(st.array([1.0, 1.0])).shape
        (2,)
    """


def _reduction(name: str, function: Callable, kinds: str, summary: str) -> Callable:
    def operator(operand: Any, axes: Sequence[int]) -> Array:
        x = _array(name, operand, kinds)
        axes = _axes(name, x, axes)
        return function(x, axes) if axes else x

    operator.__name__ = operator.__qualname__ = name
    operator.__doc__ = _ALONG_AXES.format(name=name, summary=summary, dtype="float" if "f" in kinds else "int")
    return operator


def _bitwise(name: str, of_bools: Optional[Callable]) -> Callable:
    def reduce(x: Array, axes: tuple) -> Array:
        if x.dtype.kind == "b" and of_bools is not None:
            return of_bools(x, axis=axes)
        for axis in sorted(axes, reverse=True):
            x = _ufunc_methods.reduce(name, x, axis)
        return x

    return reduce


reduce_and = _reduction(
    "reduce_and", _bitwise("bitwise_and", _reductions.all), "biu", "The elements along axes, combined by and."
)
reduce_max = _reduction(
    "reduce_max", lambda x, axes: _reductions.max(x, axis=axes), "biuf", "The greatest elements along axes."
)
reduce_min = _reduction(
    "reduce_min", lambda x, axes: _reductions.min(x, axis=axes), "biuf", "The least elements along axes."
)
reduce_or = _reduction(
    "reduce_or", _bitwise("bitwise_or", _reductions.any), "biu", "The elements along axes, combined by or."
)
reduce_prod = _reduction(
    "reduce_prod",
    lambda x, axes: _reductions.prod(x, axis=axes, dtype=x.dtype),
    "iufc",
    "The products along axes, in the operand's type.",
)
reduce_sum = _reduction(
    "reduce_sum",
    lambda x, axes: _reductions.sum(x, axis=axes, dtype=x.dtype),
    "iufc",
    "The sums along axes, in the operand's type.",
)
reduce_xor = _reduction(
    "reduce_xor", _bitwise("bitwise_xor", None), "biu", "The elements along axes, combined by exclusive or."
)


def argmax(operand: Any, axis: int, index_dtype: Any = np.int32) -> Array:
    """Where the greatest element along an axis is.

    Parameters
        operand: an array.
        axis: the axis.
        index_dtype: the type of the result.
    Returns
        An array of integers.
    Example
        >>> stride.lax.argmax(st.array([1, 5, 2]), 0).tolist()
        1
    """
    x = _array("argmax", operand, "biuf")
    return _reductions.argmax(x, axis=_axis("argmax", x, axis)).astype(index_dtype)


def argmin(operand: Any, axis: int, index_dtype: Any = np.int32) -> Array:
    """Where the least element along an axis is.

    Parameters
        operand: an array.
        axis: the axis.
        index_dtype: the type of the result.
    Returns
        An array of integers.
    Example
        >>> stride.lax.argmin(st.array([1, 5, 2]), 0).tolist()
        0
    """
    x = _array("argmin", operand, "biuf")
    return _reductions.argmin(x, axis=_axis("argmin", x, axis)).astype(index_dtype)


def _scan(name: str, ufunc: str, kinds: str, summary: str) -> Callable:
    def operator(operand: Any, axis: int = 0, reverse: bool = False) -> Array:
        x = _array(name, operand, kinds)
        return _ufunc_methods.accumulate(ufunc, x, _axis(name, x, axis), dtype=x.dtype, reverse=reverse)

    operator.__name__ = operator.__qualname__ = name
    operator.__doc__ = _ALONG_AXIS.format(name=name, summary=summary)
    return operator


cumlogsumexp = _scan("cumlogsumexp", "logaddexp", "f", "Logarithms of running sums of exponentials along an axis.")
cummax = _scan("cummax", "maximum", "biuf", "Running maxima along an axis.")
cummin = _scan("cummin", "minimum", "biuf", "Running minima along an axis.")
cumprod = _scan("cumprod", "multiply", "iufc", "Running products along an axis, in the operand's type.")
cumsum = _scan("cumsum", "add", "iufc", "Running sums along an axis, in the operand's type.")


def sort(operand: Any, dimension: int = -1, is_stable: bool = True, num_keys: int = 1) -> Any:
    """The elements in order along an axis; of a tuple of arrays, all in the order of the first `num_keys`.

    Parameters
        operand: an array, or a tuple of arrays of one shape.
        dimension: the axis.
        is_stable: accepted: sorting is stable.
        num_keys: how many of the arrays are compared.
    Returns
        An array, or a tuple of arrays.
    Example
        >>> stride.lax.sort(st.array([3, 1, 2])).tolist()
        [1, 2, 3]
    """
    if not isinstance(operand, (tuple, list)):
        return _ordering.sort(_array("sort", operand), axis=dimension)
    arrays = [_array("sort", one) for one in operand]
    if not 1 <= num_keys <= len(arrays):
        raise ValueError(f"lax.sort: num_keys is from 1 to the number of operands, {len(arrays)}, not {num_keys}")
    if len({one.shape for one in arrays}) > 1:
        raise TypeError(f"lax.sort takes operands of one shape, not {', '.join([_kind_text(one) for one in arrays])}")
    order = _ordering.argsort(arrays[num_keys - 1], axis=dimension, stable=True)
    for key in arrays[: num_keys - 1][::-1]:
        step = _ordering.argsort(_routines.take_along_axis(key, order, axis=dimension), axis=dimension, stable=True)
        order = _routines.take_along_axis(order, step, axis=dimension)
    return tuple(_routines.take_along_axis(one, order, axis=dimension) for one in arrays)


def sort_key_val(keys: Any, values: Any, dimension: int = -1, is_stable: bool = True) -> tuple:
    """Keys in order along an axis, and values in the order of the keys.

    Parameters
        keys: an array.
        values: an array of the same shape.
        dimension: the axis.
        is_stable: accepted: sorting is stable.
    Returns
        The keys and the values.
    Example
        >>> [one.tolist() for one in stride.lax.sort_key_val(st.array([3, 1]), st.array([7, 8]))]
        [[1, 3], [8, 7]]
    """
    return sort((keys, values), dimension, is_stable)


def top_k(operand: Any, k: int, *, axis: int = -1) -> list:
    """The `k` greatest elements along an axis, in order, and where they are (int32).

    Parameters
        operand: an array.
        k: how many.
        axis: the axis.
    Returns
        A list of two arrays: the elements and their places.
    Example
        >>> [one.tolist() for one in stride.lax.top_k(st.array([3, 1, 2]), 2)]
        [[3, 2], [0, 2]]
    """
    x = _array("top_k", operand, "biuf")
    if not -x.ndim <= axis < x.ndim:
        raise ValueError(f"lax.top_k: axis {axis} is out of range for an array of {x.ndim} axes")
    if not 0 <= k <= x.shape[axis]:
        raise ValueError(f"lax.top_k: k is from 0 to the length of the axis, {x.shape[axis]}, not {k}")
    if _kind_of(x.dtype) == "f":
        places = _first_places(x, k, axis)
        return [_routines.take_along_axis(x, places, axis=axis), places.astype(np.int32)]
    values, places = _ordering.top_k(x, k, axis=axis)
    return [values, places.astype(np.int32)]


def _first_places(x: Array, k: int, axis: int) -> Array:
    """Where the `k` greatest floats are: NaN comes first, and the first of equal ones."""
    order = _ordering.argsort(_manipulation.flip(x, axis=axis), axis=axis, stable=True)
    order = x.shape[axis] - 1 - _manipulation.flip(order, axis=axis)
    return order[(slice(None),) * (axis % x.ndim) + (slice(0, k),)]
