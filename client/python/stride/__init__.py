"""Stride: NumPy-like arrays on the devices of a daemon.

    import stride as st
    with st.connect():
        x = st.arange(1_000_000, dtype=st.float32)
        print(float(st.sum(st.cos(x) ** 2 + st.sin(x) ** 2)))

The module is an array API namespace (2025.12). Operations record themselves; reading a value computes it, in one round
trip. Long ones that fuse with nothing, such as products of large matrices, begin as soon as they are recorded."""

import importlib as _importlib
import math as _math
from typing import TYPE_CHECKING as _TYPE_CHECKING

import numpy as _numpy
from numpy import (
    bool, complex64, complex128, float16, float32, float64, int8, int16, int32, int64, uint8, uint16,
    uint32,  # noqa: A004
    uint64,
)

from stride._array import Array  # first: functions import it, and it imports them at its end
from stride import (
    _arrangement,
    _assembly,
    _bits,
    _calculus,
    _casts,
    _comparisons,
    _conversion,
    _creation,
    _deviations,
    _diagonals,
    _dtypes,
    _elementwise,
    _errors,
    _files,
    _functions,
    _grids,
    _groups,
    _histograms,
    _host_functions,
    _inspection,
    _jobs,
    _joining,
    _kernel_modules,
    _linear_algebra,
    _manipulation,
    _named,
    _nan_reductions,
    _nditer,
    _numpy_names,
    _ordering,
    _padding,
    _polynomials,
    _quantiles,
    _reductions,
    _routines,
    _running,
    _selection,
    _sets,
    _statistics,
    _transfers,
    _triangles,
    _unique,
    _windows,
)

for _offering in (
    _assembly, _calculus, _casts, _comparisons, _conversion, _creation, _deviations, _diagonals, _elementwise, _grids,
    _groups, _histograms, _joining, _linear_algebra, _manipulation, _nan_reductions, _ordering, _padding, _polynomials,
    _quantiles, _reductions, _routines, _running, _selection, _sets, _statistics, _triangles, _unique, _windows,
):  # fmt: skip
    _host_functions.offer(vars(_offering))

from stride._arrangement import *  # noqa: F401,F403
from stride._assembly import *  # noqa: F401,F403
from stride._bits import *  # noqa: F401,F403
from stride._calculus import *  # noqa: F401,F403
from stride._casts import *  # noqa: F401,F403
from stride._comparisons import *  # noqa: F401,F403
from stride._conversion import *  # noqa: F401,F403
from stride._creation import *  # noqa: F401,F403
from stride._deviations import *  # noqa: F401,F403
from stride._diagonals import *  # noqa: F401,F403
from stride._elementwise import *  # noqa: F401,F403
from stride._errors import *  # noqa: F401,F403
from stride._files import *  # noqa: F401,F403
from stride._functions import *  # noqa: F401,F403
from stride._grids import *  # noqa: F401,F403
from stride._jobs import *  # noqa: F401,F403
from stride._kernel_modules import *  # noqa: F401,F403
from stride._padding import *  # noqa: F401,F403
from stride._triangles import *  # noqa: F401,F403
from stride._windows import *  # noqa: F401,F403
from stride._groups import *  # noqa: F401,F403
from stride._histograms import *  # noqa: F401,F403
from stride._inspection import *  # noqa: F401,F403
from stride._inspection import __array_namespace_info__
from stride._joining import *  # noqa: F401,F403
from stride._kernel import RawKernel, vectorize
from stride._launch import Struct
from stride._linear_algebra import *  # noqa: F401,F403
from stride._manipulation import *  # noqa: F401,F403
from stride._metrics import Device, DeviceSample
from stride._named import *  # noqa: F401,F403
from stride._nan_reductions import *  # noqa: F401,F403
from stride._nditer import *  # noqa: F401,F403
from stride._numpy_names import *  # noqa: F401,F403
from stride._ordering import *  # noqa: F401,F403
from stride._polynomials import *  # noqa: F401,F403
from stride._quantiles import *  # noqa: F401,F403
from stride._reductions import *  # noqa: F401,F403
from stride._routines import *  # noqa: F401,F403
from stride._unique import *  # noqa: F401,F403
from stride._running import *  # noqa: F401,F403
from stride._selection import *  # noqa: F401,F403
from stride._sets import *  # noqa: F401,F403
from stride._statistics import *  # noqa: F401,F403
from stride._sharding import Sharding, reshard
from stride._transfers import *  # noqa: F401,F403
from stride._session import Session, connect, current_session

if _TYPE_CHECKING:  # all of these are imported on first use (`_ON_USE`)
    from stride import abi, aio, cuda, fft, lax, linalg, random, tree, tree_util
    from stride._about import devices, show_config
    from stride._einsum import einsum, einsum_path
    from stride._gufunc import guvectorize
    from stride._jit import jit
    from stride._mapping import MappedArray
    from stride._module import Global, RawModule
    from stride._python_kernel import Kernel, kernel
    from stride._vmap import vmap
    from stride.cuda import (
        atomic, blockDim, blockIdx, grid, gridDim, gridsize, local, shared, syncthreads, syncwarp, threadIdx,
    )

__version__ = "0.1.0"
__array_api_version__ = "2025.12"

# In a form that type checkers read: what a typed package imports is its own business unless it says so.
__all__ = [
    "Array", "Device", "DeviceSample", "Global", "Kernel", "MappedArray", "RawKernel", "RawModule", "Session",
    "Sharding", "Struct", "abi", "aio", "asnumpy", "atomic", "blockDim", "blockIdx", "bool", "complex128",
    "complex64", "connect", "cuda", "current_session", "devices", "e", "fft", "float16", "float32", "float64",
    "grid", "gridDim", "gridsize", "guvectorize", "inf", "int16", "int32", "int64", "int8", "jit", "kernel",
    "lax", "linalg", "local", "nan", "newaxis", "pi", "random", "reshard", "shared", "show_config",
    "syncthreads", "syncwarp", "threadIdx", "tree", "tree_util", "uint16", "uint32", "uint64", "uint8",
    "vectorize", "vmap",
]
__all__ += _arrangement.__all__
__all__ += _assembly.__all__
__all__ += _bits.__all__
__all__ += _calculus.__all__
__all__ += _casts.__all__
__all__ += _comparisons.__all__
__all__ += _conversion.__all__
__all__ += _creation.__all__
__all__ += ["einsum", "einsum_path"]
__all__ += _deviations.__all__
__all__ += _diagonals.__all__
__all__ += _elementwise.__all__
__all__ += _errors.__all__
__all__ += _files.__all__
__all__ += _functions.__all__
__all__ += _grids.__all__
__all__ += _jobs.__all__
__all__ += _kernel_modules.__all__
__all__ += _padding.__all__
__all__ += _triangles.__all__
__all__ += _windows.__all__
__all__ += _groups.__all__
__all__ += _histograms.__all__
__all__ += _inspection.__all__
__all__ += _joining.__all__
__all__ += _linear_algebra.__all__
__all__ += _manipulation.__all__
__all__ += _named.__all__
__all__ += _nan_reductions.__all__
__all__ += _nditer.__all__
__all__ += _numpy_names.__all__
__all__ += _ordering.__all__
__all__ += _polynomials.__all__
__all__ += _quantiles.__all__
__all__ += _reductions.__all__
__all__ += _routines.__all__
__all__ += _unique.__all__
__all__ += _running.__all__
__all__ += _selection.__all__
__all__ += _sets.__all__
__all__ += _statistics.__all__
__all__ += _transfers.__all__

if _dtypes.bfloat16 is not None:
    bfloat16 = _dtypes.bfloat16
    __all__ += ["bfloat16"]
e, pi, inf, nan = _math.e, _math.pi, _math.inf, _math.nan
newaxis = None


def asnumpy(x: Array) -> _numpy.ndarray:
    """The elements of an array in an array of NumPy: one round trip.

    Parameters
        x: the array.
    Returns
        A numpy.ndarray of `x`'s shape and type, which is a copy.
    Raises
        The error of the operation that computes `x`.
    Example
        >>> st.asnumpy(st.arange(3))
        array([0, 1, 2])
    """
    return x.to_numpy()


# Modules, and the names of others, that most programs do not use: importing all takes twice the time.
_ON_USE = {
    **dict.fromkeys(["abi", "aio", "cuda", "fft", "lax", "linalg", "random", "tree", "tree_util"], ""),
    **dict.fromkeys(["devices", "show_config"], "_about"),
    **dict.fromkeys(["einsum", "einsum_path"], "_einsum"),
    "jit": "_jit",
    "MappedArray": "_mapping",
    **dict.fromkeys(["Global", "RawModule"], "_module"),
    "guvectorize": "_gufunc",
    **dict.fromkeys(["Kernel", "kernel"], "_python_kernel"),
    "vmap": "_vmap",
    **dict.fromkeys(
        ["atomic", "blockDim", "blockIdx", "grid", "gridDim", "gridsize", "local", "shared", "syncthreads", "syncwarp",
         "threadIdx"],
        "cuda",
    ),
}


def __getattr__(name: str):
    """Imports a module on first use, or one of NumPy's. Raises AttributeError with the name to use instead."""
    module = _ON_USE.get(name)
    if module is None:
        return _numpy_names.missing(name)
    found = _importlib.import_module(f"stride.{module or name}")
    if module:
        found = globals()[name] = getattr(found, name)
    return found


def __dir__():
    return sorted({*globals(), *_numpy_names._MODULES, *_ON_USE})
