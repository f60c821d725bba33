"""Arrays on a GPU of this machine, by `__cuda_array_interface__`: copied through the host with the CUDA driver, when there is one."""

import ctypes
import functools
import sys
from typing import Any, Dict, Optional

import numpy as np

from stride import _dtypes, _errors, _inference


class Driver:
    """libcuda. The memory's owner has made the context; nothing here makes one."""

    def __init__(self, library):
        self._library = library

    def _check(self, code: int, what: str) -> None:
        if code:
            text = ctypes.c_char_p()
            self._library.cuGetErrorName(code, ctypes.byref(text))
            raise _errors.FailedPrecondition(f"{what} failed on this machine: {(text.value or b'?').decode()}")

    def _primary_context(self, pointer: int) -> ctypes.c_void_p:
        """Memory of a pool or of mapped ranges, such as JAX's, has a device and no context. Its owner has the primary
        one, which this program retains until it ends."""
        device, context, attribute_ordinal = ctypes.c_int(), ctypes.c_void_p(), 9
        self._check(self._library.cuPointerGetAttribute(ctypes.byref(device), attribute_ordinal,
                                                        ctypes.c_uint64(pointer)), "finding the array's device")
        self._check(self._library.cuDevicePrimaryCtxRetain(ctypes.byref(context), device), "cuDevicePrimaryCtxRetain")
        return context

    def copy(self, pointer: int, num_bytes: int) -> bytearray:
        """Device to host, once everything that the context has in flight is done."""
        library = self._library
        self._check(library.cuInit(0), "cuInit")
        context = ctypes.c_void_p()
        attribute_context = 1
        self._check(library.cuPointerGetAttribute(ctypes.byref(context), attribute_context, ctypes.c_uint64(pointer)), "finding the array's context")
        if not context:
            context = self._primary_context(pointer)
        self._check(library.cuCtxPushCurrent_v2(context), "cuCtxPushCurrent")
        try:
            self._check(library.cuCtxSynchronize(), "cuCtxSynchronize")
            target = bytearray(num_bytes)
            buffer = (ctypes.c_char * num_bytes).from_buffer(target)
            self._check(library.cuMemcpyDtoH_v2(buffer, ctypes.c_uint64(pointer), ctypes.c_size_t(num_bytes)), "cuMemcpyDtoH")
            return target
        finally:
            library.cuCtxPopCurrent_v2(ctypes.byref(ctypes.c_void_p()))


@functools.lru_cache(maxsize=1)
def load_driver() -> Optional[Driver]:
    for name in ("nvcuda.dll",) if sys.platform == "win32" else ("libcuda.so.1", "libcuda.so"):
        try:
            return Driver(ctypes.CDLL(name))
        except OSError:
            continue
    return None


def read(interface: Dict[str, Any], driver: Optional[Driver] = None) -> np.ndarray:
    """The elements, on the host."""
    if interface.get("mask") is not None:
        raise _errors.Unimplemented("masked arrays of the CUDA array interface are not there", reason="NOT_IMPLEMENTED", metadata={"feature": "mask"})
    try:
        dtype = _dtypes.dtype_of(interface["typestr"])
    except TypeError:
        raise _errors.DataTypeMismatch(f"The service has no element type {interface['typestr']}") from None
    shape = tuple(interface["shape"])
    if 0 in shape:
        return np.empty(shape, dtype)
    driver = driver or load_driver()
    if driver is None:
        raise _errors.Unavailable("An array on a GPU of this machine can be read only through its CUDA driver, and none (libcuda) can be loaded here; "
                                  "pass a NumPy array")
    strides = interface.get("strides")
    if strides is None:
        strides = (stride * dtype.itemsize for stride in _inference.contiguous_strides(shape))
    strides = tuple(strides)
    # All bytes from the first element in memory to the last.
    first = sum((n - 1) * stride for n, stride in zip(shape, strides) if stride < 0)
    last = sum((n - 1) * stride for n, stride in zip(shape, strides) if stride > 0)
    memory = driver.copy(interface["data"][0] + first, last - first + dtype.itemsize)
    return np.ndarray(shape, dtype, memory, -first, strides)
