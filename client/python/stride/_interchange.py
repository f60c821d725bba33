"""Arrays of other libraries by DLPack.

Capsules that NumPy does not take (bfloat16, a GPU's memory) are read here."""

import ctypes
from typing import TYPE_CHECKING, Any, Optional

import numpy as np

from stride import _cuda_memory, _dlpack, _dtypes, _errors, _inference

if TYPE_CHECKING:
    from stride._array import Array
    from stride._mapping import MappedArray

_HOST = (_dlpack.CPU, _dlpack.CUDA_HOST)


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
    stream = 1 if kind in (_dlpack.CUDA, _dlpack.CUDA_MANAGED) else None
    try:
        return source.__dlpack__(stream=stream, max_version=_dlpack.NEWEST)
    except TypeError:  # a library without DLPack versions
        return source.__dlpack__(stream=stream) if stream is not None else source.__dlpack__()


def _tensor_in(capsule: Any) -> _dlpack.Tensor:
    """The tensor lives as long as the capsule."""
    api = ctypes.pythonapi
    for name in (b"dltensor_versioned", b"dltensor"):
        if not api.PyCapsule_IsValid(ctypes.py_object(capsule), name):
            continue
        api.PyCapsule_GetPointer.restype = ctypes.c_void_p
        pointer = api.PyCapsule_GetPointer(ctypes.py_object(capsule), name)
        if name == b"dltensor":
            return _dlpack.Tensor.from_address(pointer)
        versioned = _dlpack.Versioned.from_address(pointer)
        if versioned.major > _dlpack.NEWEST[0]:
            raise BufferError(
                f"DLPack {versioned.major}.{versioned.minor} is newer than what is understood here, {_dlpack.NEWEST[0]}"
            )
        return versioned.tensor
    raise BufferError("the capsule holds no DLPack tensor, or one that was taken before")


def _dtype_of(data_type: _dlpack.DataType) -> np.dtype:
    size = data_type.bits // 8
    if data_type.lanes == 1 and data_type.code == _dlpack.BFLOAT and size == 2 and _dtypes.bfloat16 is not None:
        return _dtypes.bfloat16
    kind = _dlpack.KINDS.get(data_type.code)
    if data_type.lanes == 1 and kind is not None and not data_type.bits % 8:
        try:
            return _dtypes.dtype_of(f"{kind}{size}")
        except TypeError:
            pass
    raise _errors.DataTypeMismatch(
        f"the service has no element type for DLPack's code {data_type.code} with {data_type.bits} bits and "
        f"{data_type.lanes} lanes"
    )


def _copied(tensor: _dlpack.Tensor, driver: Optional[_cuda_memory.Driver]) -> np.ndarray:
    dtype = _dtype_of(tensor.dtype)
    shape = tuple(tensor.shape[: tensor.ndim])
    address = (tensor.data or 0) + tensor.byte_offset
    strides = tuple(tensor.strides[: tensor.ndim]) if tensor.strides else _inference.contiguous_strides(shape)
    strides = tuple(one * dtype.itemsize for one in strides)
    kind = tensor.device.device_type
    if kind in (_dlpack.CUDA, _dlpack.CUDA_MANAGED):
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


def exported(values: np.ndarray, max_version: Any) -> Any:
    """A capsule with an array of the host, which is handed over."""
    if _dlpack.is_bfloat16(values.dtype):
        raise BufferError("NumPy exports no bfloat16 by DLPack: use x.to_torch(), or x.astype(stride.float32)")
    if max_version is None or np.lib.NumpyVersion(np.__version__) < "2.1.0":
        return values.__dlpack__()
    return values.__dlpack__(max_version=max_version)


def mapped_on_host(array: "Array") -> "MappedArray":
    """The array's memory, on a CPU device of this machine."""
    try:
        mapping = array.map_memory()
    except (_errors.FailedPrecondition, _errors.Unimplemented, _errors.ResourceExhausted, _errors.Unavailable) as error:
        raise BufferError(f"reading so many elements without a copy needs their memory mapped: {error}") from error
    if mapping.__dlpack_device__()[0] != _dlpack.CPU:
        raise BufferError(
            f"the elements are on {mapping.device}: ask for memory of that device (x.map_memory(), or "
            "dl_device), or copy"
        )
    return mapping


def to_torch(array: "Array", copy: Optional[bool] = None, device: Any = None) -> Any:
    """A tensor on the host, or in the mapped memory of a GPU."""
    import torch

    if device is not None and torch.device(device).type == "cuda":
        if copy:
            raise ValueError("a tensor on a GPU is mapped memory: clone it for a copy")
        capsule = array.map_memory().__dlpack__(stream=1)
        tensor = torch.utils.dlpack.from_dlpack(capsule)
        if tensor.device.type != "cuda" or torch.device(device).index not in (None, tensor.device.index):
            raise BufferError(f"the array is on {tensor.device}, not on {device}")
        return tensor
    if copy is False and not array._node.session._may_hand_over(array._node):
        return torch.utils.dlpack.from_dlpack(mapped_on_host(array).__dlpack__())
    values = array._node.session._hand_over(array._node) if copy is False else array.to_numpy()
    if _dlpack.is_bfloat16(values.dtype):
        return torch.from_numpy(values.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(values)
