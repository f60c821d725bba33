"""DLPack: its structures, and capsules of memory that this client maps."""

import ctypes
from typing import Any, Dict, Optional, Tuple

import numpy as np

from stride import _dtypes

# DLDeviceType
CPU, CUDA, CUDA_HOST, CUDA_MANAGED = 1, 2, 3, 13
# DLDataTypeCode, with the kinds of NumPy's types.
KINDS = {0: "i", 1: "u", 2: "f", 5: "c", 6: "b"}
BFLOAT = 4
NEWEST = (1, 0)  # newest supported version
_READ_ONLY = 1
_NAME, _NAME_VERSIONED = b"dltensor", b"dltensor_versioned"


class Device(ctypes.Structure):
    _fields_ = [("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32)]


class DataType(ctypes.Structure):
    _fields_ = [("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16)]


class Tensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device", Device),
        ("ndim", ctypes.c_int32),
        ("dtype", DataType),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


class Managed(ctypes.Structure):
    _fields_ = [("tensor", Tensor), ("manager", ctypes.c_void_p), ("deleter", ctypes.c_void_p)]


class Versioned(ctypes.Structure):
    _fields_ = [
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("manager", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", Tensor),
    ]


# The structures that consumers hold, by address, each with its extents and the owner of the memory.
_given: Dict[int, Tuple[Any, ...]] = {}


@ctypes.CFUNCTYPE(None, ctypes.c_void_p)
def _delete(address: int) -> None:
    _given.pop(address, None)


@ctypes.PYFUNCTYPE(None, ctypes.c_void_p)
def _destroy(capsule: int) -> None:
    """Frees the tensor of a capsule that no consumer took."""
    for name in (_NAME, _NAME_VERSIONED):
        if _is_valid(capsule, name):
            _given.pop(_pointer(capsule, name), None)


def _function(name: str, result: Any, *arguments: Any) -> Any:
    # A private prototype: other libraries set those of ctypes.pythonapi.
    return ctypes.PYFUNCTYPE(result, *arguments)((name, ctypes.pythonapi))


_is_valid = _function("PyCapsule_IsValid", ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p)
_pointer = _function("PyCapsule_GetPointer", ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p)
_new = _function("PyCapsule_New", ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)


def is_bfloat16(dtype: np.dtype) -> bool:
    # NumPy takes None, where the type is missing, for float64.
    return _dtypes.bfloat16 is not None and dtype == _dtypes.bfloat16


def _data_type(dtype: np.dtype) -> DataType:
    code = BFLOAT if is_bfloat16(dtype) else {kind: code for code, kind in KINDS.items()}[dtype.kind]
    return DataType(code, 8 * dtype.itemsize, 1)


def capsule(
    owner: Any,
    address: int,
    device: Tuple[int, int],
    dtype: np.dtype,
    shape: Tuple[int, ...],
    strides: Tuple[int, ...],
    read_only: bool,
    max_version: Optional[Tuple[int, int]],
) -> Any:
    """A capsule of memory that `owner` keeps alive. Strides are in bytes. The memory must tolerate writes: a
    consumer of an older DLPack does not know the read-only flag."""
    count = len(shape)
    extents = (ctypes.c_int64 * (2 * count or 1))(*shape, *(one // dtype.itemsize for one in strides))
    first = ctypes.cast(extents, ctypes.POINTER(ctypes.c_int64))
    second = ctypes.cast(ctypes.byref(extents, 8 * count), ctypes.POINTER(ctypes.c_int64))
    tensor = Tensor(address, Device(*device), count, _data_type(dtype), first, second, 0)
    deleter = ctypes.cast(_delete, ctypes.c_void_p).value
    given: Any
    if max_version is not None and tuple(max_version) >= NEWEST:
        given, name = Versioned(*NEWEST, None, deleter, _READ_ONLY if read_only else 0, tensor), _NAME_VERSIONED
    else:
        given, name = Managed(tensor, None, deleter), _NAME
    where = ctypes.addressof(given)
    _given[where] = (given, extents, owner)
    try:
        return _new(where, name, ctypes.cast(_destroy, ctypes.c_void_p))
    except BaseException:
        del _given[where]
        raise
