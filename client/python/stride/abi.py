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
    """A pointer to nothing, as an argument of a kernel.

    Returns
        A Struct of 8 bytes.
    Example
        >>> st.abi.null_pointer().arrays()
        []
    """
    return Struct(size=8)


def _declared(ptx: str) -> dict:
    return {name: parameters for name, parameters in _ENTRY.findall(_COMMENTS.sub("", ptx))}


def entries(ptx: str) -> List[str]:
    """The names of the kernels in PTX.

    Parameters
        ptx: the text of PTX.
    Returns
        A list of str.
    Example
        >>> st.abi.entries(".visible .entry add(.param .u64 add_param_0) { ret; }")
        ['add']
    """
    return list(_declared(ptx))


def num_parameters(ptx: str, name: str) -> int:
    """The number of parameters of a kernel in PTX.

    Parameters
        ptx: the text of PTX.
        name: the kernel's name.
    Returns
        An int.
    Raises
        ValueError for a name that the text lacks.
    Example
        >>> st.abi.num_parameters(".visible .entry add(.param .u64 add_param_0) { ret; }", "add")
        1
    """
    declared = _declared(ptx)
    if name not in declared:
        raise ValueError(f"the PTX has no kernel {name}; it has: {', '.join(declared) or 'none'}")
    return declared[name].count(".param")


def numba_array(x: _Values) -> list:
    """The arguments of one array in a kernel made by Numba: two pointers for Numba's own, elements,
    bytes of one, the data, the extents, and the distances in bytes. The array must be contiguous.

    Parameters
        x: an array without gaps.
    Returns
        A list of arguments.
    Raises
        ValueError for an array with gaps.
    Example
        >>> len(st.abi.numba_array(st.zeros((2, 3))))
        9
    """
    strides = [x.dtype.itemsize * math.prod(x.shape[axis + 1:]) for axis in range(x.ndim)]
    return [
        null_pointer(), null_pointer(), np.int64(math.prod(x.shape)), np.int64(x.dtype.itemsize), x,
        *map(np.int64, x.shape), *map(np.int64, strides),
    ]


def julia_array(x: _Values) -> Struct:
    """A CuDeviceArray by value: the data, its bytes, the extents, the number of elements. The first axis of a Julia
    array is the one whose elements lie side by side, so that `x`'s axes appear there in the opposite order. The
    array must be contiguous.

    Parameters
        x: an array without gaps.
    Returns
        A Struct.
    Raises
        ValueError for an array with gaps.
    Example
        >>> len(st.abi.julia_array(st.zeros((2, 3))).arrays())
        1
    """
    count = math.prod(x.shape)
    return Struct(x, np.int64(count * x.dtype.itemsize), *map(np.int64, reversed(x.shape)), np.int64(count))


def julia_state(seed: int = 0) -> Struct:
    """The first argument that kernels of CUDA.jl 4 and later take: where exceptions are reported, and the seed of
    the kernel's random numbers.

    Parameters
        seed: the seed.
    Returns
        A Struct.
    Example
        >>> st.abi.julia_state(7).arrays()
        [array([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
               0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
               0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
               0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
               0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
               0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
               0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
               0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
               0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
               0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
               0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
               0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], dtype=uint8)]
    """
    return Struct(np.zeros(_STATE_BYTES, np.uint8), np.uint32(seed))


def triton_arguments(ptx: str, name: str, arguments: Sequence) -> list:
    """The arguments of a kernel of Triton, with null pointers for the scratch memory that such kernels take at
    their end: none, one or two, as the PTX declares.

    The kernel's metadata must ask for no scratch memory, which is so for every kernel that makes no tensor
    descriptors.

    Parameters
        ptx: the text of PTX.
        name: the kernel's name.
        arguments: the kernel's own arguments.
    Returns
        A list of arguments.
    Raises
        ValueError for another number of arguments than the kernel takes.
    Example
        >>> ptx = ".visible .entry add(.param .u64 add_param_0, .param .u64 add_param_1) { ret; }"
        >>> len(st.abi.triton_arguments(ptx, "add", [st.zeros(2)]))
        2
    """
    num_hidden = num_parameters(ptx, name) - len(arguments)
    if not 0 <= num_hidden <= 2:
        raise ValueError(
            f"{name} takes {num_parameters(ptx, name)} parameters, with up to two of scratch memory among them; "
            f"given: {len(arguments)}"
        )
    return [*arguments, *(null_pointer() for _ in range(num_hidden))]
