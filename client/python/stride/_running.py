"""Running sums and products along an axis."""

from typing import Optional

from stride import _assembly, _inference, _manipulation, _ufunc_methods
from stride._array import Array
from stride._routines import _array

__all__ = ["cumprod", "cumsum", "cumulative_prod", "cumulative_sum"]


def _running(
    function: str, x, axis: Optional[int], dtype, include_initial: bool, reverse: bool, exclusive: bool, name: str
) -> Array:
    array = _array(x)
    if axis is None:
        if array.ndim > 1:
            raise ValueError(f"{name} of several axes needs axis=")
        axis = 0
    if not array.ndim:
        array = _manipulation.reshape(array, (1,))
    return _ufunc_methods.accumulate(
        function, array, axis, dtype, include_initial=include_initial, reverse=reverse, exclusive=exclusive
    )


def cumulative_sum(
    x, /, *, axis: Optional[int] = None, dtype=None, out=None, include_initial: bool = False, reverse: bool = False,
    exclusive: bool = False,
) -> Array:
    """Running sums along an axis.

    Parameters
        x: an array.
        axis: the axis, which may be left out where there is one.
        dtype: in which to sum; integers default to int64 or uint64, others to their own type.
        out: array of the result's shape that takes it.
        include_initial: whether a 0 stands in front.
        reverse: whether they run from the last element to the first.
        exclusive: whether each is of the elements before it.
    Returns
        An array of `x`'s shape, or with `include_initial` of one element more.
    Raises
        ValueError where an axis is needed and not given; AxisError for an axis that `x` lacks.
    Example
        >>> st.cumulative_sum(st.array([1, 2, 3])).tolist()
        [1, 3, 6]
    """
    return _given(_running("add", x, axis, dtype, include_initial, reverse, exclusive, "cumulative_sum"), out)


def cumulative_prod(
    x, /, *, axis: Optional[int] = None, dtype=None, out=None, include_initial: bool = False, reverse: bool = False,
    exclusive: bool = False,
) -> Array:
    """Running products along an axis.

    Parameters
        x: an array.
        axis: the axis, which may be left out where there is one.
        dtype: in which to sum; integers default to int64 or uint64, others to their own type.
        out: array of the result's shape that takes it.
        include_initial: whether a 0 stands in front.
        reverse: whether they run from the last element to the first.
        exclusive: whether each is of the elements before it.
    Returns
        An array of `x`'s shape, or with `include_initial` of one element more.
    Raises
        ValueError where an axis is needed and not given; AxisError for an axis that `x` lacks.
    Example
        >>> st.cumulative_prod(st.array([1, 2, 3])).tolist()
        [1, 2, 6]
    """
    return _given(_running("multiply", x, axis, dtype, include_initial, reverse, exclusive, "cumulative_prod"), out)


def _given(result: Array, out) -> Array:
    if out is None:
        return result
    from stride import _arguments

    return _arguments.give(result, out, "unsafe")


def _all_or_along(name: str, a, axis: Optional[int], dtype, out) -> Array:
    array = _array(a)
    if axis is None:
        array, axis = _assembly.flat(array), 0
    elif not array.ndim:
        _inference.reduced_axes(axis, 0)
        array, axis = _manipulation.reshape(array, (1,)), 0
    return _given(_ufunc_methods.accumulate(name, array, axis, dtype), out)


def cumsum(a, axis: Optional[int] = None, dtype=None, out=None) -> Array:
    """Running sums along an axis.

    Parameters
        a: an array.
        axis: the axis; None flattens `a` first.
        dtype: in which to sum; integers default to int64 or uint64, others to their own type.
        out: array of the result's shape that takes it.
    Returns
        An array.
    Raises
        AxisError for an axis that `a` lacks.
    Example
        >>> st.cumsum(st.array([[1, 2], [3, 4]])).tolist()
        [1, 3, 6, 10]
    """
    return _all_or_along("add", a, axis, dtype, out)


def cumprod(a, axis: Optional[int] = None, dtype=None, out=None) -> Array:
    """Running products along an axis.

    Parameters
        a: an array.
        axis: the axis; None flattens `a` first.
        dtype: in which to sum; integers default to int64 or uint64, others to their own type.
        out: array of the result's shape that takes it.
    Returns
        An array.
    Raises
        AxisError for an axis that `a` lacks.
    Example
        >>> st.cumprod(st.array([1, 2, 3])).tolist()
        [1, 2, 6]
    """
    return _all_or_along("multiply", a, axis, dtype, out)
