"""Stride: NumPy-like arrays on the devices of a daemon.

    import stride as st
    with st.connect():
        x = st.arange(1_000_000, dtype=st.float32)
        print(float(st.sum(st.cos(x) ** 2 + st.sin(x) ** 2)))

The module is an array API namespace (2024.12). Operations record themselves; reading a value computes it, in one round trip.
Long ones that fuse with nothing, such as products of large matrices, begin as soon as they are recorded."""

import math as _math

import numpy as _numpy
from numpy import (bool, complex64, complex128, float16, float32, float64, int8, int16, int32, int64, uint8, uint16, uint32,  # noqa: A004
                   uint64)

from stride import _dtypes, fft, linalg, random
from stride._about import devices, show_config
from stride._array import Array
from stride._creation import *  # noqa: F401,F403
from stride._elementwise import *  # noqa: F401,F403
from stride._errors import *  # noqa: F401,F403
from stride._functions import *  # noqa: F401,F403
from stride._inspection import *  # noqa: F401,F403
from stride._inspection import __array_namespace_info__
from stride._kernel import RawKernel, vectorize
from stride._launch import Struct
from stride._linear_algebra import *  # noqa: F401,F403
from stride._manipulation import *  # noqa: F401,F403
from stride._metrics import Device, DeviceSample
from stride._module import Global, RawModule
from stride._named import *  # noqa: F401,F403
from stride._python_kernel import Kernel, guvectorize, kernel
from stride._reductions import *  # noqa: F401,F403
from stride._routines import *  # noqa: F401,F403
from stride import abi, cuda
from stride.cuda import atomic, blockDim, blockIdx, grid, gridDim, gridsize, local, shared, syncthreads, syncwarp, threadIdx
from stride._sharding import Sharding, reshard
from stride._trace import jit
from stride._vmap import vmap
from stride._session import Session, connect, current_session

__version__ = "0.1.0"
__array_api_version__ = "2024.12"

if _dtypes.bfloat16 is not None:
    bfloat16 = _dtypes.bfloat16
e, pi, inf, nan = _math.e, _math.pi, _math.inf, _math.nan
newaxis = None


def asnumpy(x: Array) -> _numpy.ndarray:
    """A copy on the host."""
    return x.to_numpy()
