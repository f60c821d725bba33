"""Axes turned and counted: rotations, mirrored arrays, and what NumPy's functions say of shapes."""

import operator
from typing import Any, Iterator, Optional, Tuple

import numpy as np

from stride import _inference, _manipulation
from stride._array import Array, array_of, host_array

__all__ = [
    "broadcast",
    "fliplr",
    "flipud",
    "isfortran",
    "isscalar",
    "iterable",
    "may_share_memory",
    "ndenumerate",
    "ndim",
    "rollaxis",
    "rot90",
    "shape",
    "shares_memory",
    "size",
]


def shape(a: Any) -> Tuple[int, ...]:
    """The extents of an array, a number or nested sequences.

    Parameters
        a: an array, a number or nested sequences.
    Returns
        A tuple of int.
    Example
        >>> st.shape([[1, 2, 3]])
        (1, 3)
    """
    return a.shape if isinstance(a, Array) else array_of(a).shape if isinstance(a, (list, tuple)) else np.shape(a)


def ndim(a: Any) -> int:
    """The number of axes.

    Parameters
        a: an array, a number or nested sequences.
    Returns
        An int.
    Example
        >>> st.ndim([[1, 2, 3]])
        2
    """
    return len(shape(a))


def size(a: Any, axis: Any = None) -> int:
    """The number of elements, or of those along an axis or several.

    Parameters
        a: an array, a number or nested sequences.
        axis: an axis or a tuple of axes; None counts all elements.
    Returns
        An int.
    Raises
        AxisError for an axis that `a` does not have.
    Example
        >>> st.size([[1, 2, 3]], 1)
        3
    """
    extents = shape(a)
    axes = _inference.normal_axes(axis, len(extents))
    result = 1
    for one in axes:
        result *= extents[one]
    return result


def isscalar(element: Any) -> bool:
    """Whether something is a number: also an array without axes that NumPy would give a scalar for, which is one that
    was computed or read from an array, not one that was made or is a view.

    Parameters
        element: any object.
    Returns
        A bool.
    Example
        >>> st.isscalar(3.1), st.isscalar(st.array(3.1)), st.isscalar(st.sum([1, 2]))
        (True, False, True)
    """
    if isinstance(element, Array):
        return not element.ndim and element._node.strides is None
    return np.isscalar(element)


def iterable(y: Any) -> bool:
    """Whether something can be iterated over.

    Parameters
        y: any object.
    Returns
        A bool.
    Example
        >>> st.iterable([1]), st.iterable(2)
        (True, False)
    """
    try:
        iter(y)
    except TypeError:
        return False
    return True


def isfortran(a: Any) -> bool:
    """Whether an array's first axis is the fastest, and it does not lie in C order as well.

    Parameters
        a: an array, or what becomes one.
    Returns
        A bool.
    Example
        >>> st.isfortran(st.zeros((2, 3)).T)
        True
    """
    return array_of(a).flags.fnc


def may_share_memory(a: Any, b: Any, /, max_work: int = 0) -> bool:
    """Whether arrays may have elements in common: whether their spans overlap.

    Parameters
        a: an array.
        b: another array.
        max_work: accepted: what two arrays span is compared at once.
    Returns
        A bool.
    Raises
        TypeError for an argument that is no array.
    Example
        >>> x = st.zeros(4)
        >>> st.may_share_memory(x, x[1:]), st.may_share_memory(x, x + 0)
        (True, False)
    """
    return _overlaps(a, b, np.may_share_memory, max_work)


def shares_memory(a: Any, b: Any, /, max_work: int = -1) -> bool:
    """Whether arrays have elements in common.

    Parameters
        a: an array.
        b: another array.
        max_work: accepted: the answer is exact anyway.
    Returns
        A bool.
    Raises
        TypeError for an argument that is no array.
    Example
        >>> x = st.zeros(4)
        >>> st.shares_memory(x[::2], x[1::2]), st.shares_memory(x, x[1::2])
        (False, True)
    """
    return _overlaps(a, b, np.shares_memory, max_work)


class _Span:
    """An array interface with the strides of a view, at an address that is never read."""

    def __init__(self, array: Array):
        item = array.dtype.itemsize
        self.__array_interface__ = {
            "shape": array.shape,
            "typestr": array.dtype.str if array.dtype.kind != "V" else f"<u{item}",
            "data": ((1 << 40) + item * array._node.first_element, True),
            "strides": array.strides,
            "version": 3,
        }


def _overlaps(a: Any, b: Any, function: Any, max_work: int) -> bool:
    if not isinstance(a, Array) or not isinstance(b, Array):
        return False if isinstance(a, Array) or isinstance(b, Array) else function(a, b, max_work)
    if not a.size or not b.size:
        return False
    same_node = a._node is b._node
    if not same_node and (a._node.buffer is None or a._node.buffer is not b._node.buffer):
        return False
    return bool(function(np.asarray(_Span(a)), np.asarray(_Span(b)), max_work))


def rollaxis(a: Any, axis: int, start: int = 0) -> Array:
    """A view with an axis moved before another; `moveaxis` is the clearer form.

    Parameters
        a: an array.
        axis: which axis.
        start: the axis in front of which it comes.
    Returns
        An array.
    Raises
        AxisError for an axis that `a` lacks.
    Example
        >>> st.rollaxis(st.ones((3, 4, 5)), 2).shape
        (5, 3, 4)
    """
    from stride import _errors

    array = array_of(a)
    axis = _inference.normal_axis(axis, array.ndim)
    place = operator.index(start)
    place = place + array.ndim if place < 0 else place
    if not 0 <= place <= array.ndim:
        raise _errors.AxisError(f"start={start} is out of bounds for an array of {array.ndim} axes", start, array.ndim)
    return _manipulation.moveaxis(array, axis, place - 1 if place > axis else place)


def rot90(m: Any, k: int = 1, axes: Tuple[int, int] = (0, 1)) -> Array:
    """A view turned by quarter turns, from the first of two axes to the second.

    Parameters
        m: an array of two axes or more.
        k: how many turns.
        axes: the axes.
    Returns
        An array.
    Raises
        ValueError for axes that are the same, not two, or not there.
    Example
        >>> st.rot90(st.array([[1, 2], [3, 4]])).tolist()
        [[2, 4], [1, 3]]
    """
    pair = tuple(axes)
    if len(pair) != 2:
        raise ValueError("len(axes) must be 2.")
    array = array_of(m)
    if any(not -array.ndim <= one < array.ndim for one in pair):
        raise ValueError(f"Axes={pair} out of range for array of ndim={array.ndim}.")
    first, second = (one % array.ndim for one in pair)
    if first == second:
        raise ValueError("Axes must be different.")
    k = operator.index(k) % 4
    if k == 0:
        return array[...]
    if k == 2:
        return _manipulation.flip(array, (first, second))
    if k == 1:
        return _manipulation.swapaxes(_manipulation.flip(array, second), first, second)
    return _manipulation.flip(_manipulation.swapaxes(array, first, second), second)


def fliplr(m: Any) -> Array:
    """A view with the elements along the second axis in the opposite order.

    Parameters
        m: an array of two axes or more.
    Returns
        A view of `m`'s shape and type.
    Raises
        ValueError for fewer than two axes.
    Example
        >>> st.fliplr(st.array([[1, 2]])).tolist()
        [[2, 1]]
    """
    array = array_of(m)
    if array.ndim < 2:
        raise ValueError("Input must be >= 2-d.")
    return _manipulation.flip(array, 1)


def flipud(m: Any) -> Array:
    """A view with the elements along the first axis in the opposite order.

    Parameters
        m: an array of one axis or more.
    Returns
        A view of `m`'s shape and type.
    Raises
        ValueError for an array without axes.
    Example
        >>> st.flipud(st.array([1, 2])).tolist()
        [2, 1]
    """
    array = array_of(m)
    if array.ndim < 1:
        raise ValueError("Input must be >= 1-d.")
    return _manipulation.flip(array, 0)


class ndenumerate:  # noqa: N801, NumPy's name
    """Pairs of the indices and the value of each element, in C order; the array is read once.

    Parameters
        arr: an array, or what becomes one.
    Example
        >>> list(st.ndenumerate(st.array([5, 6])))[0][0]
        (0,)
    """

    def __init__(self, arr: Any):
        self._pairs = iter(np.ndenumerate(arr._read() if isinstance(arr, Array) else host_array(arr)))

    def __next__(self):
        return next(self._pairs)

    def __iter__(self) -> Iterator:
        return self


class broadcast:  # noqa: N801, NumPy's name
    """The shape that arrays have together, and tuples of their elements, for which they are read once.

    Parameters
        args: arrays or what becomes ones, whose shapes fit.
    Raises
        ShapeMismatch where shapes do not fit.
    Example
        >>> st.broadcast(st.zeros((2, 1)), st.zeros(3)).shape
        (2, 3)
    """

    def __init__(self, *args: Any):
        self._arrays = tuple(array_of(one) for one in args)
        self.shape = _inference.broadcast(*(one.shape for one in self._arrays)) if self._arrays else ()
        self.nd = self.ndim = len(self.shape)
        self.numiter = len(self._arrays)
        self.size = size_of(self.shape)
        self._host: Optional[np.broadcast] = None

    def _iterator(self) -> np.broadcast:
        if self._host is None:
            self._host = np.broadcast(*(one._read() for one in self._arrays))
        return self._host

    @property
    def index(self) -> int:
        """The number of tuples that the iteration has given.

        Example
            >>> st.broadcast(st.zeros(3), 1).index
            0
        """
        return 0 if self._host is None else self._host.index

    @property
    def iters(self) -> tuple:
        """An iterator over the elements of each argument, in the broadcast shape.

        Example
            >>> [list(map(int, one)) for one in st.broadcast(st.array([1, 2]), 7).iters]
            [[1, 2], [7, 7]]
        """
        return self._iterator().iters

    def reset(self) -> None:
        """Lets the iteration begin again.

        Returns
            None.
        Example
            >>> pairs = st.broadcast(st.array([1, 2]), 7)
            >>> _ = next(pairs)
            >>> pairs.reset()
            >>> pairs.index
            0
        """
        self._host = None

    def __iter__(self) -> "broadcast":
        return self

    def __next__(self) -> tuple:
        return next(self._iterator())


def size_of(extents: Tuple[int, ...]) -> int:
    result = 1
    for one in extents:
        result *= one
    return result
