"""Windows and other layouts of an array's elements. They are copies for reading: elements have one place here."""

import operator
from typing import Any, List, Optional, Sequence

from stride import _arguments, _creation, _dtypes, _inference, _manipulation, _routines
from stride._array import Array
from stride._manipulation import broadcast_arrays, broadcast_shapes, broadcast_to

__all__ = ["as_strided", "broadcast_arrays", "broadcast_shapes", "broadcast_to", "sliding_window_view"]


def _gathered(flat: Array, shape: Sequence[int], strides: Sequence[int]) -> Array:
    """The elements of a contiguous array at strides in elements, which nothing can be written to."""
    places: Any = _creation.zeros((1,) * len(shape), _dtypes.int64)
    for axis, (extent, stride) in enumerate(zip(shape, strides)):
        line = _creation.arange(extent, dtype=_dtypes.int64) * stride
        places = places + _manipulation.reshape(line, (extent,) + (1,) * (len(shape) - axis - 1))
    result = _routines.take(flat, places)
    result._node.freeze()
    return result


def _refuse(subok: Any, writeable: Any) -> None:
    if subok:
        raise _arguments.unimplemented("subok=True", "the service's arrays have no subclasses")
    if writeable:
        raise _arguments.unimplemented("writeable=True", "the result is a copy, which writes would not leave")


def sliding_window_view(
    x: Any, window_shape: Any, axis: Any = None, *, subok: bool = False, writeable: bool = False
) -> Array:
    """All windows of a shape, at each place where one fits. The result is a copy for reading.

    Parameters
        x: the array.
        window_shape: the extents of a window, one for each axis of `axis`; an int for one.
        axis: the axes along which the window slides; None for all.
        subok: not there; False.
        writeable: not there; False.
    Returns
        An array with the window's axes last.
    Raises
        ValueError for a negative extent, another number of extents than axes, or a window that is larger than `x`.
    Example
        >>> st.lib.stride_tricks.sliding_window_view(st.arange(4), 3).tolist()
        [[0, 1, 2], [1, 2, 3]]
    """
    _refuse(subok, writeable)
    (array,) = _arguments.arrays(x)
    window = tuple(map(operator.index, window_shape)) if _is_sequence(window_shape) else (operator.index(window_shape),)
    if any(extent < 0 for extent in window):
        raise ValueError("`window_shape` cannot contain negative values")
    if axis is None:
        axes: List[int] = list(range(array.ndim))
        if len(window) != len(axes):
            raise ValueError(
                "Since axis is None, must provide window_shape for all dimensions of `x`; got "
                f"{len(window)} window_shape elements and `x.ndim` is {array.ndim}."
            )
    else:
        axes = [_axis(one, array.ndim) for one in (axis if _is_sequence(axis) else (axis,))]
        if len(window) != len(axes):
            raise ValueError(
                "Must provide matching length window_shape and axis; got "
                f"{len(window)} window_shape elements and {len(axes)} axes elements."
            )
    places = list(array.shape)
    for one, extent in zip(axes, window):
        if places[one] < extent:
            raise ValueError("window shape cannot be larger than input array shape")
        places[one] -= extent - 1
    strides = _inference.contiguous_strides(array.shape)
    return _gathered(
        _manipulation.reshape(array, (-1,)), (*places, *window), (*strides, *(strides[one] for one in axes))
    )


def _is_sequence(one: Any) -> bool:
    return isinstance(one, (tuple, list)) or getattr(one, "ndim", 0) == 1


def _axis(axis: Any, ndim: int) -> int:
    from numpy.lib.array_utils import normalize_axis_index

    return normalize_axis_index(operator.index(axis), ndim)


def as_strided(
    x: Any, shape: Any = None, strides: Any = None, subok: bool = False, writeable: Optional[bool] = None
) -> Array:
    """The elements of an array in another shape and at other strides. The result is a copy for reading, where NumPy
    gives a view; strides outside of the array are an error.

    Parameters
        x: the array, contiguous in C order.
        shape: the extents; None for those of `x`.
        strides: bytes from an element to the next along each axis; None for those of `x`.
        subok: not there; False.
        writeable: not there; False or None.
    Returns
        An array of this shape.
    Raises
        ValueError where an element is outside of `x`, a stride is not a multiple of an element's bytes, or `x` is a
        view that is not contiguous.
    Example
        >>> x = st.arange(4)
        >>> st.lib.stride_tricks.as_strided(x, (2, 2), (8, 8)).tolist()
        [[0, 1], [1, 2]]
    """
    _refuse(subok, writeable)
    (array,) = _arguments.arrays(x)
    extents = array.shape if shape is None else tuple(map(operator.index, shape if _is_sequence(shape) else (shape,)))
    steps = array.strides if strides is None else tuple(map(operator.index, strides))
    if any(extent < 0 for extent in extents):
        raise ValueError("negative dimensions are not allowed")
    if len(steps) != len(extents):
        raise ValueError("mismatch in length of strides and shape")
    if not array.flags.c_contiguous:
        raise ValueError("as_strided takes an array that is contiguous in C order; copy this view first")
    size = array.dtype.itemsize
    if any(step % size for step in steps):
        raise ValueError(f"strides are multiples of an element's {size} bytes")
    in_elements = [step // size for step in steps]
    if all(extents):
        reach = [(extent - 1) * step for extent, step in zip(extents, in_elements)]
        if sum(min(one, 0) for one in reach) < 0 or sum(max(one, 0) for one in reach) >= array.size:
            raise ValueError("these strides reach outside of the array")
    return _gathered(_manipulation.reshape(array, (-1,)), extents, in_elements)
