"""Bits of bytes: packed and unpacked."""

from typing import Any, Optional

import numpy as np

from stride import _assembly, _creation, _dtypes, _inference, _manipulation, _reductions
from stride._array import Array, array_of
from stride._manipulation import reshape

__all__ = ["packbits", "unpackbits"]


def _order(bitorder: str) -> np.ndarray:
    if bitorder not in ("big", "little"):
        raise ValueError("'order' must be either 'little' or 'big'")
    places = np.arange(8, dtype=np.uint8)
    return places[::-1].copy() if bitorder == "big" else places


def _along(a: Any, axis: Optional[int]):
    array = array_of(a)
    if axis is None:
        return reshape(array, (array.size,)), 0
    return array, _inference.normal_axis(axis, array.ndim)


def packbits(a: Any, /, axis: Optional[int] = None, bitorder: str = "big") -> Array:
    """Packs eight elements into each byte: a bit is set for a nonzero element.

    Parameters
        a: an array of integers or bools.
        axis: the axis; None takes all elements in C order.
        bitorder: big for the first element in the highest bit, or little.
    Returns
        An array of uint8.
    Raises
        TypeError for other types; ValueError for another order.
    Example
        >>> st.packbits([1, 0, 1]).tolist()
        [160]
    """
    array, axis = _along(a, axis)
    if array.dtype.kind not in "biu":
        raise TypeError("Expected an input array of integer or boolean data type")
    shifts = _order(bitorder)
    bits = _manipulation.moveaxis(array != 0, axis, -1)
    *before, extent = bits.shape
    missing = -extent % 8
    if missing:
        bits = _assembly.concat([bits, _creation.zeros((*before, missing), _dtypes.bool)], -1)
    bytes_ = reshape(bits, (*before, (extent + missing) // 8, 8)).astype(_dtypes.uint8)
    packed = _reductions.sum(bytes_ << array_of(shifts, array.session), axis=-1, dtype=_dtypes.uint8)
    return _manipulation.moveaxis(packed, -1, axis)


def unpackbits(a: Any, /, axis: Optional[int] = None, count: Optional[int] = None, bitorder: str = "big") -> Array:
    """The bits of bytes, each an element.

    Parameters
        a: an array of uint8.
        axis: the axis; None takes all elements in C order.
        count: how many bits of the axis; a negative number leaves out as many at the end, and missing ones are 0.
        bitorder: big for the first element in the highest bit, or little.
    Returns
        An array of uint8, 0 or 1.
    Raises
        TypeError for other types; ValueError for another order and too negative a count.
    Example
        >>> st.unpackbits(st.array([160], st.uint8), count=3).tolist()
        [1, 0, 1]
    """
    array, axis = _along(a, axis)
    if array.dtype != _dtypes.uint8:
        raise TypeError("Expected an input array of unsigned byte data type")
    bytes_ = _manipulation.moveaxis(array, axis, -1)
    shifts = array_of(_order(bitorder), array.session)
    bits = (reshape(bytes_, (*bytes_.shape, 1)) >> shifts) & 1
    bits = reshape(bits, (*bytes_.shape[:-1], bytes_.shape[-1] * 8))
    if count is not None:
        extent = bits.shape[-1]
        if count < -extent:
            raise ValueError(f"-count larger than number of elements: {count}")
        wanted = count if count >= 0 else extent + count
        if wanted > extent:
            bits = _assembly.concat([bits, _creation.zeros((*bits.shape[:-1], wanted - extent), _dtypes.uint8)], -1)
        bits = bits[..., :wanted]
    return _manipulation.moveaxis(bits, -1, axis)
