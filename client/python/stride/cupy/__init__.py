"""CuPy's module over the service's arrays: `import stride.cupy as cp`.

Every function of `stride` is here, under the names that NumPy and CuPy share; with them CuPy's kernels
(`ElementwiseKernel`, `ReductionKernel`, `RawKernel`, `RawModule`, `fuse`), `cuda` with devices, streams and events,
memory numbers, and NumPy's types. `stride.cupyx` has what CuPy's cupyx has. Arrays are stride's: `cp.ndarray` is
`stride.Array`, `x.get()` and `cp.asnumpy(x)` are copies on the host.

A name without a meaning here raises AttributeError with what to use; functions without a meaning that programs call
anyway do nothing, and say so in their documentation."""

import importlib
from typing import Any, List, Optional

import numpy as _numpy

import stride as _stride
from stride import Array as ndarray
from stride._array import Array as _Array
from stride.cupy import _names
from stride.cupy._broadcast import broadcast
from stride.cupy._elementwise import ElementwiseKernel
from stride.cupy._functions import argmax, argmin, array, asanyarray, ascontiguousarray, asfortranarray, row_stack
from stride.cupy._fusion import fuse
from stride.cupy._pools import get_default_memory_pool, get_default_pinned_memory_pool
from stride.cupy._raw import RawKernel, RawModule
from stride.cupy._reduction import ReductionKernel

_OWN = [
    "ElementwiseKernel",
    "RawKernel",
    "RawModule",
    "ReductionKernel",
    "argmax",
    "argmin",
    "array",
    "asanyarray",
    "asarray",
    "ascontiguousarray",
    "asfortranarray",
    "asnumpy",
    "broadcast",
    "clear_memo",
    "cuda",
    "fft",
    "from_dlpack",
    "fuse",
    "get_array_module",
    "get_default_memory_pool",
    "get_default_pinned_memory_pool",
    "is_available",
    "linalg",
    "memoize",
    "ndarray",
    "random",
    "row_stack",
    "show_config",
    "testing",
]
_MODULES = ("cuda", "fft", "linalg", "random", "testing")
__version__ = _stride.__version__


def asarray(
    a: Any, dtype: Any = None, order: Optional[str] = None, *, blocking: bool = False, copy: Optional[bool] = None
):
    """An array of the service: `a` itself where it is one of that type, else a copy of its elements. Arrays are
    C-contiguous whatever `order`.

    Parameters
        a: an array, or what becomes one.
        dtype: the element type; None for `a`'s.
        order: C, F, A or K; the elements' values do not depend on it.
        blocking: accepted.
        copy: True for a copy in any case; False raises ValueError where one is needed.
    Returns
        An array.
    Raises
        DataTypeMismatch for elements that the service does not have.
    Example
        >>> import stride.cupy as cp
        >>> cp.asarray([1, 2]).tolist()
        [1, 2]
    """
    return _stride.asarray(a, dtype=dtype, copy=copy)


def asnumpy(
    a: Any, stream: Any = None, order: str = "C", out: Optional[_numpy.ndarray] = None, *, blocking: bool = True
) -> _numpy.ndarray:
    """A copy on the host; in `out` where it is given. Other values become an array of NumPy.

    Parameters
        a: an array, or what becomes one.
        stream: accepted: operations run in order whatever the stream.
        order: C, F or A: in which order the elements of the copy lie.
        out: an array of NumPy that takes the elements.
        blocking: accepted: the call waits.
    Returns
        A numpy.ndarray.
    Raises
        ValueError for an `out` of another shape or type.
    Example
        >>> import stride.cupy as cp
        >>> cp.asnumpy(cp.arange(3))
        array([0, 1, 2])
    """
    if isinstance(a, _Array):
        return a.get(order=order, out=out)
    values = _numpy.asarray(a, order=order if order in ("C", "F") else None)  # type: ignore[call-overload]
    if out is not None:
        out[...] = values
        return out
    return values


def from_dlpack(array: Any, **options: Any):
    """An array of the service with the elements of another library's array.

    Parameters
        array: an object with `__dlpack__`.
        options: `device` and `copy` of `stride.from_dlpack`.
    Returns
        An array.
    Raises
        BufferError for elements that are on a device.
    Example
        >>> import stride.cupy as cp
        >>> cp.from_dlpack(np.arange(3)).tolist()
        [0, 1, 2]
    """
    return _stride.from_dlpack(array)


def get_array_module(*args: Any):
    """This module where an argument is an array of the service, else NumPy: `xp = cp.get_array_module(x)`.

    Parameters
        args: any objects.
    Returns
        This module or numpy.
    Example
        >>> import stride.cupy as cp
        >>> cp.get_array_module(cp.zeros(2)).__name__, cp.get_array_module(np.zeros(2)).__name__
        ('stride.cupy', 'numpy')
    """
    import sys

    return sys.modules[__name__] if any(isinstance(one, _Array) for one in args) else _numpy


def is_available() -> bool:
    """Whether a daemon with a serving device can be reached. A CPU device runs kernels too.

    Returns
        A bool.
    Example
        >>> import stride.cupy as cp
        >>> cp.is_available()
        True
    """
    from stride.cupy import cuda

    return cuda.is_available()


def memoize(for_each_device: bool = False):
    """A decorator that keeps a function's results by its arguments.

    Parameters
        for_each_device: accepted.
    Returns
        A decorator.
    Example
        >>> import stride.cupy as cp
        >>> @cp.memoize()
        ... def square(x):
        ...     return x * x
        ...
        >>> square(3)
        9
    """
    import functools

    def decorate(function):
        kept = functools.lru_cache(maxsize=None)(function)
        _memoized.append(kept)
        return kept

    return decorate


_memoized: List[Any] = []


def clear_memo() -> None:
    """Forgets the results of memoized functions.

    Returns
        None.
    Example
        >>> import stride.cupy as cp
        >>> cp.clear_memo()
    """
    for one in _memoized:
        one.cache_clear()


def show_config(*, _full: bool = False) -> None:
    """Prints the versions of the client's dependencies and the daemon (stride.show_config).

    Parameters
        _full: accepted.
    Returns
        None.
    Example
        >>> import stride.cupy as cp
        >>> import contextlib, io
        >>> with contextlib.redirect_stdout(io.StringIO()) as text:
        ...     cp.show_config()
        ...
        >>> "numpy" in text.getvalue()
        True
    """
    _stride.show_config()


def disable_experimental_feature_warning(*_: Any) -> None:
    """Does nothing: there are no such warnings."""


def __getattr__(name: str):
    if name in _MODULES:
        return importlib.import_module(f"stride.cupy.{name}")
    if name == "cupyx":
        return importlib.import_module("stride.cupyx")
    if name in _names.REFUSED and not hasattr(_stride, name):
        raise AttributeError(f"cupy.{name} is not there: {_names.REFUSED[name]}")
    if not name.startswith("_") or name in _stride.__all__:
        found = getattr(_stride, _names.ALIASES.get(name, name), None)
        if found is not None or name == "newaxis":
            return found
    if name in _names.FROM_NUMPY and hasattr(_numpy, name):
        return getattr(_numpy, name)
    name = _names.ALIASES.get(name, name)
    if hasattr(_numpy, name) and not name.startswith("_"):
        raise AttributeError(f"stride.cupy has no {name} yet; numpy.{name}(cp.asnumpy(x)) computes it on the host")
    raise AttributeError(f"stride.cupy has no {name}")


def _public() -> List[str]:
    return sorted(
        {
            *_OWN,
            *_stride.__all__,
            *(one for one in _names.FROM_NUMPY if hasattr(_numpy, one)),
            *(one for one, target in _names.ALIASES.items() if hasattr(_stride, target)),
        }
    )


__all__ = _public()


def __dir__() -> List[str]:
    return _public()
