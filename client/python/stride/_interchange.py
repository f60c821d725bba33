"""Arrays of other libraries by DLPack.

Capsules that NumPy does not take (bfloat16, a GPU's memory) are read here."""

import ctypes
from typing import TYPE_CHECKING, Any, Optional

import numpy as np

from stride import _cuda_memory, _dtypes, _errors, _inference

if TYPE_CHECKING:
    from stride._array import Array

# DLDeviceType
_CPU, _CUDA, _CUDA_HOST, _CUDA_MANAGED = 1, 2, 3, 13
_HOST = (_CPU, _CUDA_HOST)
# DLDataTypeCode, with the kinds of NumPy's types.
_KINDS = {0: "i", 1: "u", 2: "f", 5: "c", 6: "b"}
_BFLOAT = 4
_NEWEST = (1, 0)  # of the versions that are understood


class _Device(ctypes.Structure):
    _fields_ = [("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32)]


class _DataType(ctypes.Structure):
    _fields_ = [("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16)]


class _Tensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device", _Device),
        ("ndim", ctypes.c_int32),
        ("dtype", _DataType),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


class _Versioned(ctypes.Structure):
    _fields_ = [
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("manager", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", _Tensor),
    ]


def read(source: Any, driver: Optional[_cuda_memory.Driver] = None) -> np.ndarray:
    """The elements of an object with `__dlpack__`, or of a capsule, on the host: maybe the object's own memory."""
    if hasattr(source, "__dlpack__"):
        kind = int(source.__dlpack_device__()[0])
        interface = getattr(source, "__cuda_array_interface__", None) if kind not in _HOST else None
        if interface is not None:
            return _cuda_memory.read(interface, driver)
        if kind in _HOST:
            try:
                return np.from_dlpack(source)
            except (BufferError, RuntimeError):
                pass  # an element type that NumPy lacks
        capsule = _capsule_of(source, kind)
    elif type(source).__name__ == "PyCapsule":
        capsule = source
    else:
        raise TypeError(f"from_dlpack takes an object with __dlpack__, not {type(source).__name__}")
    return _copied(_tensor_in(capsule), driver)


def _capsule_of(source: Any, kind: int) -> Any:
    # Stream 1 is CUDA's default one; the driver waits for the whole context.
    stream = 1 if kind in (_CUDA, _CUDA_MANAGED) else None
    try:
        return source.__dlpack__(stream=stream, max_version=_NEWEST)
    except TypeError:  # of a library that knows no versions
        return source.__dlpack__(stream=stream) if stream is not None else source.__dlpack__()


def _tensor_in(capsule: Any) -> _Tensor:
    """The tensor lives as long as the capsule."""
    api = ctypes.pythonapi
    for name in (b"dltensor_versioned", b"dltensor"):
        if not api.PyCapsule_IsValid(ctypes.py_object(capsule), name):
            continue
        api.PyCapsule_GetPointer.restype = ctypes.c_void_p
        pointer = api.PyCapsule_GetPointer(ctypes.py_object(capsule), name)
        if name == b"dltensor":
            return _Tensor.from_address(pointer)
        versioned = _Versioned.from_address(pointer)
        if versioned.major > _NEWEST[0]:
            raise BufferError(
                f"DLPack {versioned.major}.{versioned.minor} is newer than what is understood here, {_NEWEST[0]}"
            )
        return versioned.tensor
    raise BufferError("the capsule holds no DLPack tensor, or one that was taken before")


def _dtype_of(data_type: _DataType) -> np.dtype:
    size = data_type.bits // 8
    if data_type.lanes == 1 and data_type.code == _BFLOAT and size == 2 and _dtypes.bfloat16 is not None:
        return _dtypes.bfloat16
    kind = _KINDS.get(data_type.code)
    if data_type.lanes == 1 and kind is not None and not data_type.bits % 8:
        try:
            return _dtypes.dtype_of(f"{kind}{size}")
        except TypeError:
            pass
    raise _errors.DataTypeMismatch(
        f"the service has no element type for DLPack's code {data_type.code} with {data_type.bits} bits and "
        f"{data_type.lanes} lanes"
    )


def _copied(tensor: _Tensor, driver: Optional[_cuda_memory.Driver]) -> np.ndarray:
    dtype = _dtype_of(tensor.dtype)
    shape = tuple(tensor.shape[: tensor.ndim])
    address = (tensor.data or 0) + tensor.byte_offset
    strides = tuple(tensor.strides[: tensor.ndim]) if tensor.strides else _inference.contiguous_strides(shape)
    strides = tuple(one * dtype.itemsize for one in strides)
    kind = tensor.device.device_type
    if kind in (_CUDA, _CUDA_MANAGED):
        interface = {"typestr": dtype, "shape": shape, "data": (address, True), "strides": strides}
        return _cuda_memory.read(interface, driver)
    if kind not in _HOST:
        raise BufferError(f"memory of DLPack's device type {kind} cannot be read here: pass a copy on the host")
    if 0 in shape:
        return np.empty(shape, dtype)
    first = sum((n - 1) * stride for n, stride in zip(shape, strides) if stride < 0)
    last = sum((n - 1) * stride for n, stride in zip(shape, strides) if stride > 0)
    memory = (ctypes.c_char * (last - first + dtype.itemsize)).from_address(address + first)
    return np.ndarray(shape, dtype, memory, -first, strides).copy()


def _is_bfloat16(dtype: np.dtype) -> bool:
    # NumPy takes None, where the type is missing, for float64.
    return _dtypes.bfloat16 is not None and dtype == _dtypes.bfloat16


def exported(values: np.ndarray, max_version: Any) -> Any:
    """A capsule with an array of the host, which is handed over."""
    if _is_bfloat16(values.dtype):
        raise BufferError("NumPy exports no bfloat16 by DLPack: use x.to_torch(), or x.astype(stride.float32)")
    if max_version is None or np.lib.NumpyVersion(np.__version__) < "2.1.0":
        return values.__dlpack__()
    return values.__dlpack__(max_version=max_version)


def to_torch(array: "Array", copy: Optional[bool] = None) -> Any:
    """A tensor on the host."""
    import torch

    values = array._node.session._hand_over(array._node) if copy is False else array.to_numpy()
    if _is_bfloat16(values.dtype):
        return torch.from_numpy(values.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(values)
