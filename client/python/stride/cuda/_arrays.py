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
    """An array of the service with the elements of `obj`. `to`: one that exists, which takes them. `copy=False`
    returns an array of the service itself.

    Parameters
        obj: an array, or what becomes one.
        stream: accepted: operations run in order whatever the stream.
        copy: whether an array of the service is copied as well.
        to: an array of the same shape that takes the elements, or None.
    Returns
        An array.
    Raises
        ShapeMismatch for a `to` of another shape.
    Example
        >>> from stride import cuda
        >>> cuda.to_device(np.arange(3)).copy_to_host()
        array([0, 1, 2])
    """
    from stride import _conversion

    if to is not None:
        to[...] = _conversion.asarray(obj, dtype=to.dtype) if not _is_array(obj) else obj
        return to
    if _is_array(obj) and not copy:
        return obj
    return _conversion.asarray(obj, copy=True)


def device_array(shape, dtype=np.float64, strides=None, order: str = "C", stream=0):
    """Zeros, since earlier content of the memory must not be visible. Arrays are C-contiguous: `order` and `strides`
    change no element.

    Parameters
        shape: an integer or a sequence of integers.
        dtype: the element type.
        strides: accepted: elements lie in C order without gaps.
        order: C or F; the values do not depend on it.
        stream: accepted: operations run in order whatever the stream.
    Returns
        An array.
    Raises
        TypeError for a type that the service lacks.
    Example
        >>> from stride import cuda
        >>> cuda.device_array(3).tolist()
        [0.0, 0.0, 0.0]
    """
    from stride import _creation

    return _creation.zeros(shape, dtype=np.dtype(dtype))


def device_array_like(ary, stream=0):
    """Zeros of the shape and type of `ary`.

    Parameters
        ary: an array of the host or of the service.
        stream: accepted: operations run in order whatever the stream.
    Returns
        An array.
    Example
        >>> from stride import cuda
        >>> cuda.device_array_like(np.ones(3)).tolist()
        [0.0, 0.0, 0.0]
    """
    return device_array(np.shape(ary), ary.dtype)


def pinned_array(shape, dtype=np.float64, strides=None, order: str = "C") -> np.ndarray:
    """An ordinary NumPy array: the client needs no page-locked memory. `Session.empty_shared` has memory that the
    daemon of this machine reads in place.

    Parameters
        shape: an integer or a sequence of integers.
        dtype: the element type.
        strides: accepted: elements lie in C order without gaps.
        order: C or F.
    Returns
        A numpy.ndarray.
    Example
        >>> from stride import cuda
        >>> cuda.pinned_array(3).shape
        (3,)
    """
    return np.zeros(shape, np.dtype(dtype), order)  # type: ignore[call-overload]


def pinned_array_like(ary) -> np.ndarray:
    """An ordinary NumPy array of the shape and type of `ary`.

    Parameters
        ary: an array of the host or of the service.
    Returns
        A numpy.ndarray.
    Example
        >>> from stride import cuda
        >>> cuda.pinned_array_like(np.ones(3)).shape
        (3,)
    """
    return pinned_array(np.shape(ary), ary.dtype)


@contextlib.contextmanager
def pinned(*arrays: Any):
    """A context that keeps arrays page-locked for CUDA. It does nothing: the client needs no page-locked memory.

    Parameters
        arrays: arrays of the host.
    Returns
        A context.
    Example
        >>> from stride import cuda
        >>> with cuda.pinned(np.ones(3)):
        ...     pass
        ...
    """
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
    wrote when it returns. The host does not see writes of a kernel that still runs.

    Parameters
        shape: an integer or a sequence of integers.
        dtype: the element type.
        strides: accepted: elements lie in C order without gaps.
        order: C, F, A or K; the elements' values do not depend on it.
        stream: accepted: operations run in order whatever the stream.
        portable: accepted.
        wc: accepted.
    Returns
        A numpy.ndarray.
    Example
        >>> from stride import cuda
        >>> cuda.mapped_array(3).shape
        (3,)
    """
    return np.zeros(shape, np.dtype(dtype), order).view(HostArray)  # type: ignore[call-overload]


def mapped_array_like(ary, stream=0, portable: bool = False, wc: bool = False) -> np.ndarray:
    """A mapped array of the shape and type of `ary`.

    Parameters
        ary: an array of the host or of the service.
        stream: accepted: operations run in order whatever the stream.
        portable: accepted.
        wc: accepted.
    Returns
        A numpy.ndarray.
    Example
        >>> from stride import cuda
        >>> cuda.mapped_array_like(np.ones(3)).shape
        (3,)
    """
    return mapped_array(np.shape(ary), ary.dtype)


def managed_array(
    shape, dtype=np.float64, strides=None, order: str = "C", stream=0, attach_global: bool = True
) -> np.ndarray:
    """An array of the host for kernels to use, as `mapped_array`.

    Parameters
        shape: an integer or a sequence of integers.
        dtype: the element type.
        strides: accepted: elements lie in C order without gaps.
        order: C, F, A or K; the elements' values do not depend on it.
        stream: accepted: operations run in order whatever the stream.
        attach_global: accepted.
    Returns
        A numpy.ndarray.
    Example
        >>> from stride import cuda
        >>> cuda.managed_array(3).shape
        (3,)
    """
    return mapped_array(shape, dtype)


def as_cuda_array(obj, sync: bool = True):
    """An array of the service with the elements of one on a GPU of this machine, which are copied.

    Parameters
        obj: an array of the service, or an object with `__cuda_array_interface__`.
        sync: accepted: the copy is made at once.
    Returns
        An array.
    Raises
        TypeError for another object.
    Example
        >>> from stride import cuda
        >>> cuda.as_cuda_array(st.arange(3)).tolist()
        [0, 1, 2]
    """
    from stride import _conversion

    return obj if _is_array(obj) else _conversion.asarray(obj)


def is_cuda_array(obj) -> bool:
    """Whether it is an array of the service, or one with `__cuda_array_interface__`.

    Parameters
        obj: any object.
    Returns
        A bool.
    Example
        >>> from stride import cuda
        >>> cuda.is_cuda_array(st.ones(2)), cuda.is_cuda_array(np.ones(2))
        (True, False)
    """
    return _is_array(obj) or hasattr(obj, "__cuda_array_interface__")


def open_ipc_array(*_, **__):
    """Refused: name the array instead (stride.save, stride.load)."""
    refused(
        "cuda.open_ipc_array",
        "memory of the device has no address in a client; give the array a name with stride.save and load it by that "
        "name",
    )
