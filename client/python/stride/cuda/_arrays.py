"""Arrays on the device and on the host."""

import contextlib
from typing import Any

import numpy as np

from stride._execution import refused

# The array modules are imported at their first use, since stride._translate imports this package.


def _is_array(anything) -> bool:
    from stride._array import Array

    return isinstance(anything, Array)


def to_device(obj, stream=0, copy: bool = True, to=None):
    """An array of the service with the elements of `obj`. `to`: one that exists, which takes them. `copy=False` returns
    an array of the service itself."""
    from stride import _creation

    if to is not None:
        to[...] = _creation.asarray(obj, dtype=to.dtype) if not _is_array(obj) else obj
        return to
    if _is_array(obj) and not copy:
        return obj
    return _creation.asarray(obj, copy=True)


def device_array(shape, dtype=np.float64, strides=None, order: str = "C", stream=0):
    """Zeros: nothing of what was in memory before may be seen. Arrays are C-contiguous: `order` and `strides` change no
    element."""
    from stride import _creation

    return _creation.zeros(shape, dtype=np.dtype(dtype))


def device_array_like(ary, stream=0):
    """Zeros of the shape and type of `ary`."""
    return device_array(np.shape(ary), ary.dtype)


def pinned_array(shape, dtype=np.float64, strides=None, order: str = "C") -> np.ndarray:
    """An ordinary NumPy array: the client needs no page-locked memory. `Session.empty_shared` has memory that the
    daemon of this machine reads in place."""
    return np.zeros(shape, np.dtype(dtype), order)  # type: ignore[call-overload]


def pinned_array_like(ary) -> np.ndarray:
    """An ordinary NumPy array of the shape and type of `ary`."""
    return pinned_array(np.shape(ary), ary.dtype)


@contextlib.contextmanager
def pinned(*arrays: Any):
    """Does nothing: the client needs no page-locked memory."""
    yield


class HostArray(np.ndarray):
    """Memory of the host that launches take: each launch copies it to the device and brings back what its kernel
    wrote."""

    def copy_to_host(self, ary=None, stream=0) -> np.ndarray:
        """Its elements, which are on the host."""
        if ary is None:
            return np.array(self)
        ary[...] = self
        return ary

    def copy_to_device(self, ary, stream=0) -> None:
        """Takes the elements of `ary`."""
        self[...] = np.asarray(ary)


def mapped_array(
    shape, dtype=np.float64, strides=None, order: str = "C", stream=0, portable: bool = False, wc: bool = False
) -> np.ndarray:
    """An array of the host for kernels to use: a launch copies it to the device, and has copied back what the kernel
    wrote when it returns. The host does not see writes of a kernel that still runs."""
    return np.zeros(shape, np.dtype(dtype), order).view(HostArray)  # type: ignore[call-overload]


def mapped_array_like(ary, stream=0, portable: bool = False, wc: bool = False) -> np.ndarray:
    """A mapped array of the shape and type of `ary`."""
    return mapped_array(np.shape(ary), ary.dtype)


def managed_array(
    shape, dtype=np.float64, strides=None, order: str = "C", stream=0, attach_global: bool = True
) -> np.ndarray:
    """As mapped_array."""
    return mapped_array(shape, dtype)


def as_cuda_array(obj, sync: bool = True):
    """An array of the service with the elements of one on a GPU of this machine, which are copied."""
    from stride import _creation

    return obj if _is_array(obj) else _creation.asarray(obj)


def is_cuda_array(obj) -> bool:
    """Whether it is an array of the service, or one with `__cuda_array_interface__`."""
    return _is_array(obj) or hasattr(obj, "__cuda_array_interface__")


def open_ipc_array(*_, **__):
    """Refused: name the array instead (stride.save, stride.load)."""
    refused(
        "cuda.open_ipc_array",
        "memory of the device has no address in a client; give the array a name with stride.save and load it by that "
        "name",
    )
