"""Numba's names for kernels and ufuncs on the service: `from stride.numba import cuda, vectorize, guvectorize,
float32`.

`cuda` is stride.cuda. `vectorize` and `guvectorize` compute on the service whatever their target. `jit`, `njit` and
`prange` mark functions that kernels may call; called from Python they run in Python, which Numba itself would compile:
install Numba for that."""

import functools
import sys

from stride import _signatures, cuda
from stride._signatures import TYPES
from stride.cuda import cg, devicearray, fp16, guvectorize, libdevice, random, vectorize
from stride.numba import types
from stride.numba.core import config, errors

# Every type by each of its names, `float32` and `f4`.
globals().update(
    {
        name: one
        for name, one in TYPES.items()
        if name.isidentifier() and name not in ("None", "bool", "int", "float", "complex")
    }
)
prange = range

# `from stride.numba.cuda.random import ...` imports stride.cuda's modules. They are entered here, not found as files:
# the package numba-cuda installs a finder that takes every module with "numba.cuda" in its name.
sys.modules[f"{__name__}.cuda"] = cuda
for _module in (cg, devicearray, fp16, libdevice, random):
    sys.modules[f"{__name__}.cuda.{_module.__name__.rpartition('.')[2]}"] = _module

__all__ = [
    "config",
    "cuda",
    "errors",
    "from_dtype",
    "guvectorize",
    "jit",
    "literal_unroll",
    "njit",
    "prange",
    "typeof",
    "types",
    "vectorize",
]
__all__ += [name for name in TYPES if name not in ("None", "none", "bool", "int", "float", "complex")]


def jit(signature_or_function=None, *_, **__):
    """Marks a function that kernels may call. Called from Python it runs in Python: nothing here compiles for the
    host.

    Parameters
        signature_or_function: the function, or signatures, which are accepted.
    Returns
        The function, or a decorator.
    Example
        >>> from stride import numba
        >>> @numba.jit
        ... def double(x):
        ...     return 2 * x
        ...
        >>> double(4)
        8
    """
    if signature_or_function is None or _signatures.is_signature(signature_or_function):
        return jit
    function = signature_or_function

    @functools.wraps(function)
    def call(*arguments, **kwargs):
        return function(*arguments, **kwargs)

    call.python_function = call.py_func = function  # type: ignore[attr-defined]
    return call


njit = jit


def literal_unroll(values):
    """A tuple that loops of a kernel go over.

    Parameters
        values: a tuple.
    Returns
        The tuple itself.
    Example
        >>> from stride import numba
        >>> numba.literal_unroll((1, 2))
        (1, 2)
    """
    return values


def from_dtype(dtype):
    """The type of NumPy's dtype.

    Parameters
        dtype: a type of NumPy.
    Returns
        An element type.
    Raises
        TypeError for a type that the service lacks.
    Example
        >>> from stride import numba
        >>> numba.from_dtype(np.float32)
        float32
    """
    import numpy

    name = numpy.dtype(dtype).name
    if name not in TYPES:
        raise TypeError(f"there is no element type for {dtype}")
    return TYPES[name]


def typeof(value):
    """The type of a number or of an array.

    Parameters
        value: a number or an array.
    Returns
        An element type, or an array's type.
    Raises
        TypeError for another object.
    Example
        >>> from stride import numba
        >>> numba.typeof(np.ones((2, 2)))
        float64[:, :]
    """
    import numpy

    if hasattr(value, "shape") and not isinstance(value, numpy.generic):
        return _signatures.ArrayType(value.dtype, len(value.shape))
    return from_dtype(numpy.result_type(value) if not isinstance(value, bool) else numpy.bool_)
