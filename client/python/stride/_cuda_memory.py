"""The CUDA driver, where there is one: arrays on a GPU of this machine (`__cuda_array_interface__`) are copied through
the host, and memory that the daemon shares is mapped."""

import ctypes
import functools
import sys
from typing import Any, Dict, Optional, Tuple

import numpy as np

from stride import _dtypes, _errors, _inference


_POSIX_DESCRIPTOR = 1  # CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR


class _Access(ctypes.Structure):
    """CUmemAccessDesc: a location (1: a device, by its number), and what is allowed there (3: to read and write)."""

    _fields_ = [("type", ctypes.c_int), ("device", ctypes.c_int), ("flags", ctypes.c_int)]


class Driver:
    """libcuda. The memory's owner has made the context; nothing here makes one but `map_shared`."""

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

    def _device_of(self, uuid: str) -> Tuple[int, int]:
        """This process's number for the GPU of the daemon's name (`GPU-...`), and the driver's handle."""
        count = ctypes.c_int()
        self._check(self._library.cuDeviceGetCount(ctypes.byref(count)), "cuDeviceGetCount")
        for ordinal in range(count.value):
            device, found = ctypes.c_int(), (ctypes.c_ubyte * 16)()
            self._check(self._library.cuDeviceGet(ctypes.byref(device), ordinal), "cuDeviceGet")
            self._check(self._library.cuDeviceGetUuid(ctypes.byref(found), device), "cuDeviceGetUuid")
            digits = bytes(found).hex()
            if uuid == "GPU-" + "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:])):
                return ordinal, device.value
        raise _errors.FailedPrecondition(
            f"the array is on {uuid}, which is not among the {count.value} GPUs that this process sees "
            "(CUDA_VISIBLE_DEVICES); read it by to_numpy()"
        )

    def map_shared(self, descriptor: int, size: int, uuid: str) -> "MappedMemory":
        """Maps memory of a GPU by the descriptor of another process, in the primary context, which other libraries
        use."""
        library = self._library
        self._check(library.cuInit(0), "cuInit")
        ordinal, device = self._device_of(uuid)
        context = ctypes.c_void_p()
        self._check(library.cuDevicePrimaryCtxRetain(ctypes.byref(context), device), "cuDevicePrimaryCtxRetain")
        mapped = MappedMemory(self, context, ordinal, size)
        self._check(library.cuCtxPushCurrent_v2(context), "cuCtxPushCurrent")
        handle = ctypes.c_uint64()
        try:
            self._check(
                library.cuMemImportFromShareableHandle(
                    ctypes.byref(handle), ctypes.c_void_p(descriptor), _POSIX_DESCRIPTOR
                ),
                "importing the array's memory",
            )
            try:
                mapped.map(handle, device)
            finally:
                library.cuMemRelease(handle)  # the mapping keeps the memory
        except BaseException:
            mapped.close()
            raise
        finally:
            library.cuCtxPopCurrent_v2(ctypes.byref(ctypes.c_void_p()))
        return mapped

    def copy(self, pointer: int, num_bytes: int) -> bytearray:
        """Copies device to host, after all work in flight in the context."""
        library = self._library
        self._check(library.cuInit(0), "cuInit")
        context = ctypes.c_void_p()
        attribute_context = 1
        self._check(
            library.cuPointerGetAttribute(ctypes.byref(context), attribute_context, ctypes.c_uint64(pointer)),
            "finding the array's context",
        )
        if not context:
            context = self._primary_context(pointer)
        self._check(library.cuCtxPushCurrent_v2(context), "cuCtxPushCurrent")
        try:
            self._check(library.cuCtxSynchronize(), "cuCtxSynchronize")
            target = bytearray(num_bytes)
            buffer = (ctypes.c_char * num_bytes).from_buffer(target)
            self._check(
                library.cuMemcpyDtoH_v2(buffer, ctypes.c_uint64(pointer), ctypes.c_size_t(num_bytes)), "cuMemcpyDtoH"
            )
            return target
        finally:
            library.cuCtxPopCurrent_v2(ctypes.byref(ctypes.c_void_p()))


class MappedMemory:
    """Addresses of this process that are mapped to memory of a GPU, until `close`."""

    def __init__(self, driver: Driver, context: ctypes.c_void_p, ordinal: int, size: int):
        self._driver, self._context, self._size = driver, context, ctypes.c_size_t(size)
        self._reserved, self._is_mapped = ctypes.c_uint64(), False
        self.ordinal = ordinal

    @property
    def address(self) -> int:
        return self._reserved.value

    def map(self, handle: ctypes.c_uint64, device: int) -> None:
        """Caller has made the context current."""
        library, check = self._driver._library, self._driver._check
        none = ctypes.c_uint64()
        check(
            library.cuMemAddressReserve(ctypes.byref(self._reserved), self._size, ctypes.c_size_t(0), none, none),
            "reserving addresses for the array",
        )
        check(library.cuMemMap(self._reserved, self._size, ctypes.c_size_t(0), handle, none), "mapping the array")
        self._is_mapped = True
        access = _Access(1, device, 3)
        check(
            library.cuMemSetAccess(self._reserved, self._size, ctypes.byref(access), ctypes.c_size_t(1)),
            "opening the array for access",
        )

    def close(self) -> None:
        """Waits for all work of the context, which may use the memory. Ignores errors: the context ends with
        the process."""
        library = self._driver._library
        if not self._reserved.value or library.cuCtxPushCurrent_v2(self._context):
            return
        library.cuCtxSynchronize()
        if self._is_mapped:
            library.cuMemUnmap(self._reserved, self._size)
        library.cuMemAddressFree(self._reserved, self._size)
        self._reserved, self._is_mapped = ctypes.c_uint64(), False
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
        raise _errors.Unimplemented(
            "masked arrays of the CUDA array interface are not there",
            reason="NOT_IMPLEMENTED",
            metadata={"feature": "mask"},
        )
    try:
        dtype = _dtypes.dtype_of(interface["typestr"])
    except TypeError:
        raise _errors.DataTypeMismatch(f"The service has no element type {interface['typestr']}") from None
    shape = tuple(interface["shape"])
    if 0 in shape:
        return np.empty(shape, dtype)
    driver = driver or load_driver()
    if driver is None:
        raise _errors.Unavailable(
            "An array on a GPU of this machine can be read only through its CUDA driver, and none (libcuda) can "
            "be loaded here; "
            "pass a NumPy array"
        )
    strides = interface.get("strides")
    if strides is None:
        strides = (stride * dtype.itemsize for stride in _inference.contiguous_strides(tuple(shape)))
    strides = tuple(strides)
    # All bytes from the first element in memory to the last.
    first = sum((n - 1) * stride for n, stride in zip(shape, strides) if stride < 0)
    last = sum((n - 1) * stride for n, stride in zip(shape, strides) if stride > 0)
    memory = driver.copy(interface["data"][0] + first, last - first + dtype.itemsize)
    return np.ndarray(shape, dtype, memory, -first, strides)
