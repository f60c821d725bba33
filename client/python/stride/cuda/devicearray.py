"""Numba's module of device arrays: `isinstance(x, cuda.devicearray.DeviceNDArray)`. Its arrays are stride's."""

from typing import Any

from stride._array import Array as DeviceNDArray

__all__ = ["DeviceNDArray", "is_cuda_ndarray"]


def is_cuda_ndarray(obj: Any) -> bool:
    """Whether it is an array of the service."""
    return isinstance(obj, DeviceNDArray)
