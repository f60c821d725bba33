"""Numba's module of device arrays: `isinstance(x, cuda.devicearray.DeviceNDArray)`. Its arrays are stride's."""

from typing import Any

from stride._array import Array as DeviceNDArray

__all__ = ["DeviceNDArray", "is_cuda_ndarray"]


def is_cuda_ndarray(obj: Any) -> bool:
    """Whether it is an array of the service.

    Parameters
        obj: an object.
    Returns
        A bool.
    Example
        >>> from stride import cuda
        >>> cuda.devicearray.is_cuda_ndarray(st.ones(2)), cuda.devicearray.is_cuda_ndarray(np.ones(2))
        (True, False)
    """
    return isinstance(obj, DeviceNDArray)
