"""Arguments as other compilers' PTX takes them, for stride.RawKernel(..., ptx=True).

    Numba       kernel(grid, block, [*abi.numba_array(x), *abi.numba_array(y), np.float32(2)])
    CUDA.jl     kernel(grid, block, [abi.julia_state(), abi.julia_array(x), np.float32(2)])
    Triton      kernel(grid, 32 * num_warps, abi.triton_arguments(ptx, name, [x, y, np.int32(n)]))

PTX runs on CUDA devices alone; elsewhere the launch is refused."""

import math
import re
from typing import List, Sequence, Union

import numpy as np

from stride._array import Array
from stride._launch import Struct

__all__ = ["entries", "julia_array", "julia_state", "null_pointer", "num_parameters", "numba_array", "triton_arguments"]

_COMMENTS = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_ENTRY = re.compile(r"\.entry\s+([\w$.]+)\s*(?:\(([^)]*)\))?")
_STATE_BYTES = 256

_Values = Union[Array, np.ndarray]


def null_pointer() -> Struct:
    return Struct(size=8)


def _declared(ptx: str) -> dict:
    return {name: parameters for name, parameters in _ENTRY.findall(_COMMENTS.sub("", ptx))}


def entries(ptx: str) -> List[str]:
    """The names of the kernels in PTX."""
    return list(_declared(ptx))


def num_parameters(ptx: str, name: str) -> int:
    declared = _declared(ptx)
    if name not in declared:
        raise ValueError(f"the PTX has no kernel {name}; it has: {', '.join(declared) or 'none'}")
    return declared[name].count(".param")


def numba_array(x: _Values) -> list:
    """The arguments that stand for one array in a kernel made by Numba: two pointers for Numba's own, elements, bytes of one, the data, the extents, and
    the distances in bytes. The array must be contiguous."""
    strides = [x.dtype.itemsize * math.prod(x.shape[axis + 1:]) for axis in range(x.ndim)]
    return [null_pointer(), null_pointer(), np.int64(math.prod(x.shape)), np.int64(x.dtype.itemsize), x, *map(np.int64, x.shape), *map(np.int64, strides)]


def julia_array(x: _Values) -> Struct:
    """A CuDeviceArray by value: the data, its bytes, the extents, the number of elements. The first axis of a Julia array is the one whose elements lie side by
    side, so that `x`'s axes appear there in the opposite order. The array must be contiguous."""
    count = math.prod(x.shape)
    return Struct(x, np.int64(count * x.dtype.itemsize), *map(np.int64, reversed(x.shape)), np.int64(count))


def julia_state(seed: int = 0) -> Struct:
    """What kernels of CUDA.jl 4 and later take before their own arguments: where exceptions are told, and the seed of the kernel's random numbers."""
    return Struct(np.zeros(_STATE_BYTES, np.uint8), np.uint32(seed))


def triton_arguments(ptx: str, name: str, arguments: Sequence) -> list:
    """With null pointers for the scratch memory that Triton's kernels take behind their own arguments: none, one or two, as the PTX declares. For
    kernels whose metadata ask for no scratch memory, which are all that make no tensor descriptors."""
    num_hidden = num_parameters(ptx, name) - len(arguments)
    if not 0 <= num_hidden <= 2:
        raise ValueError(f"{name} takes {num_parameters(ptx, name)} parameters, with up to two of scratch memory among them; given: {len(arguments)}")
    return [*arguments, *(null_pointer() for _ in range(num_hidden))]
