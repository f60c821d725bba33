"""CuPy's cupyx over the service's arrays: `import stride.cupyx as cupyx`, or `cp.cupyx`.

There are scatter_add, scatter_max and scatter_min, rsqrt, arrays of the host, `profiler.benchmark`, `time.repeat`, and
`jit.rawkernel`, whose kernels are Python translated as stride.kernel's are."""

import contextlib
import importlib
from typing import Any

import numpy as _numpy

from stride._array import Array as _Array
from stride.cupy._elementwise import ElementwiseKernel as _ElementwiseKernel

__all__ = [
    "allow_synchronize",
    "empty_like_pinned",
    "empty_pinned",
    "errstate",
    "get_runtime_info",
    "geterr",
    "jit",
    "linalg",
    "profiler",
    "rsqrt",
    "scatter_add",
    "scatter_max",
    "scatter_min",
    "scipy",
    "seterr",
    "time",
    "zeros_like_pinned",
    "zeros_pinned",
]


def _scattered(name: str, a: Any, slices: Any, value: Any) -> None:
    if not isinstance(a, _Array):
        raise TypeError(f"an array of the service is written, not {type(a).__name__}")
    getattr(a, f"scatter_{name}")(slices, value)


def scatter_add(a, slices, value) -> None:
    """`a[slices] += value`, in which a repeated index counts each time.

    Parameters
        a: the array that is changed.
        slices: what stands between brackets: integers, slices, arrays of integers or bools.
        value: what broadcasts to the places.
    Returns
        None.
    Raises
        TypeError for an `a` on the host; IndexError for an index outside.
    Example
        >>> import stride.cupyx as cupyx
        >>> x = st.zeros(2)
        >>> cupyx.scatter_add(x, st.array([0, 0, 1]), 1.0)
        >>> x.tolist()
        [2.0, 1.0]
    """
    _scattered("add", a, slices, value)


def scatter_max(a, slices, value) -> None:
    """`a[slices]` becomes the greatest of itself and the values whose index names it.

    Parameters
        a: the array that is changed.
        slices: what stands between brackets: integers, slices, arrays of integers or bools.
        value: what broadcasts to the places.
    Returns
        None.
    Raises
        TypeError for an `a` on the host; IndexError for an index outside.
    Example
        >>> import stride.cupyx as cupyx
        >>> x = st.zeros(2)
        >>> cupyx.scatter_max(x, st.array([0, 0, 1]), 1.0)
        >>> x.tolist()
        [1.0, 1.0]
    """
    _scattered("max", a, slices, value)


def scatter_min(a, slices, value) -> None:
    """`a[slices]` becomes the least of itself and the values whose index names it.

    Parameters
        a: the array that is changed.
        slices: what stands between brackets: integers, slices, arrays of integers or bools.
        value: what broadcasts to the places.
    Returns
        None.
    Raises
        TypeError for an `a` on the host; IndexError for an index outside.
    Example
        >>> import stride.cupyx as cupyx
        >>> x = st.zeros(2)
        >>> cupyx.scatter_min(x, st.array([0, 0, 1]), 1.0)
        >>> x.tolist()
        [0.0, 0.0]
    """
    _scattered("min", a, slices, value)


_rsqrt = _ElementwiseKernel("T x", "T y", "y = (T)rsqrt((double)x)", "cupyx_rsqrt")
_rsqrt_single = _ElementwiseKernel("float32 x", "float32 y", "y = rsqrtf(x)", "cupyx_rsqrt_single")


def rsqrt(x, out=None):
    """1 / sqrt(x), of floats in their own type and of integers in float64.

    Parameters
        x: an array, or what becomes one.
        out: an array of `x`'s shape that takes the result.
    Returns
        An array of floats.
    Example
        >>> import stride.cupyx as cupyx
        >>> cupyx.rsqrt(st.array([4.0])).tolist()
        [0.5]
    """
    from stride import _conversion

    x = _conversion.asarray(x)
    if x.dtype.kind not in "f":
        x = x.astype(_numpy.float64)
    kernel = _rsqrt_single if x.dtype == _numpy.float32 else _rsqrt
    return kernel(x) if out is None else kernel(x, out)


def empty_pinned(shape, dtype=float, order: str = "C") -> _numpy.ndarray:
    """An ordinary NumPy array: the client needs no page-locked memory. `Session.empty_shared` has memory that the
    daemon of this machine reads in place.

    Parameters
        shape: an integer or a sequence of integers.
        dtype: the element type.
        order: C or F.
    Returns
        A numpy.ndarray.
    Example
        >>> import stride.cupyx as cupyx
        >>> cupyx.empty_pinned(3).shape
        (3,)
    """
    return _numpy.empty(shape, dtype, order)  # type: ignore[call-overload]


def empty_like_pinned(a, dtype=None, order: str = "K", subok=None, shape=None) -> _numpy.ndarray:
    """An ordinary NumPy array of the shape and type of `a`.

    Parameters
        a: an array of the host or of the service.
        dtype: the element type; None for `a`'s.
        order: C, F, A or K.
        subok: accepted.
        shape: the shape; None for `a`'s.
    Returns
        A numpy.ndarray.
    Example
        >>> import stride.cupyx as cupyx
        >>> cupyx.empty_like_pinned(np.ones(3)).shape
        (3,)
    """
    return _numpy.empty(
        a.shape if shape is None else shape, a.dtype if dtype is None else dtype, "F" if order == "F" else "C"
    )


def zeros_pinned(shape, dtype=float, order: str = "C") -> _numpy.ndarray:
    """An ordinary NumPy array of zeros.

    Parameters
        shape: an integer or a sequence of integers.
        dtype: the element type.
        order: C or F.
    Returns
        A numpy.ndarray.
    Example
        >>> import stride.cupyx as cupyx
        >>> cupyx.zeros_pinned(3).tolist()
        [0.0, 0.0, 0.0]
    """
    return _numpy.zeros(shape, dtype, order)  # type: ignore[call-overload]


def zeros_like_pinned(a, dtype=None, order: str = "K", subok=None, shape=None) -> _numpy.ndarray:
    """An ordinary NumPy array of zeros of the shape and type of `a`.

    Parameters
        a: an array of the host or of the service.
        dtype: the element type; None for `a`'s.
        order: C, F, A or K.
        subok: accepted.
        shape: the shape; None for `a`'s.
    Returns
        A numpy.ndarray.
    Example
        >>> import stride.cupyx as cupyx
        >>> cupyx.zeros_like_pinned(np.ones(3)).tolist()
        [0.0, 0.0, 0.0]
    """
    return _numpy.zeros(
        a.shape if shape is None else shape, a.dtype if dtype is None else dtype, "F" if order == "F" else "C"
    )


_errors = {"divide": None, "over": None, "under": None, "invalid": None, "linalg": "raise", "fallback_mode": "ignore"}


def geterr() -> dict:
    """The settings of seterr. Devices compute on whatever they are: infinities and NaN show what went wrong, and
    linear algebra raises.

    Returns
        A dict of names and settings.
    Example
        >>> import stride.cupyx as cupyx
        >>> sorted(cupyx.geterr())
        ['divide', 'fallback_mode', 'invalid', 'linalg', 'over', 'under']
    """
    return dict(_errors)


def seterr(**settings: Any) -> dict:
    """Sets what geterr returns, and returns what it was before. It changes nothing else.

    Parameters
        settings: `divide`, `over`, `under`, `invalid`, `linalg` or `fallback_mode`.
    Returns
        The settings before.
    Raises
        TypeError for a setting that there is not.
    Example
        >>> import stride.cupyx as cupyx
        >>> before = cupyx.seterr(linalg="raise")
        >>> _ = cupyx.seterr(**before)
    """
    before = geterr()
    for name, value in settings.items():
        if name not in _errors:
            raise TypeError(f"there is no setting {name}; there are {', '.join(_errors)}")
        if value not in (None, "ignore", "raise", "warn", "print"):
            raise ValueError(f"{name} is None, ignore, raise, warn or print, not {value!r}")
        if name in ("divide", "over", "under", "invalid") and value is not None:
            raise NotImplementedError(f"devices compute on: {name} can only be None")
        _errors[name] = value
    return before


@contextlib.contextmanager
def errstate(**settings: Any):
    """A context with other settings of `seterr`, which has the old ones back at its end.

    Parameters
        settings: what `seterr` takes.
    Returns
        A context.
    Raises
        TypeError for a setting that there is not.
    Example
        >>> import stride.cupyx as cupyx
        >>> with cupyx.errstate(linalg="raise"):
        ...     cupyx.geterr()["linalg"]
        ...
        'raise'
    """
    before = seterr(**settings)
    try:
        yield
    finally:
        _errors.update(before)


@contextlib.contextmanager
def allow_synchronize(allow: bool):
    """A context that permits reads to wait, or forbids them, in CuPy. It does nothing: a read always waits for its
    value.

    Parameters
        allow: accepted.
    Returns
        A context.
    Example
        >>> import stride.cupyx as cupyx
        >>> with cupyx.allow_synchronize(False):
        ...     x = st.zeros(3)
        ...
    """
    yield


def get_runtime_info(**_: Any) -> dict:
    """The versions of the client's dependencies and the daemon.

    Returns
        A dict of names and texts.
    Example
        >>> import stride.cupyx as cupyx
        >>> "numpy" in cupyx.get_runtime_info()
        True
    """
    from stride._about import show_config

    return show_config("dicts") or {}


_REFUSED = {
    "GeneralizedUFunc": "use stride.guvectorize",
    "fallback_mode": "NumPy's own functions take the service's arrays",
    "optimizing": "the service plans its launches itself",
    "lapack": "use cp.linalg",
    "cusparse": "the service has no sparse matrices",
    "cusolver": "use cp.linalg",
    "cutensor": "use cp.einsum",
    "distributed": "use stride.Sharding",
    "signal": "use NumPy's and SciPy's on the host",
    "scatter_update": "assign: a[indices] = values",
    "tools": "it is CuPy's own machinery",
}


def __getattr__(name: str):
    if name in ("jit", "linalg", "profiler", "scipy", "time"):
        return importlib.import_module(f"stride.cupyx.{name}")
    if name in _REFUSED:
        raise AttributeError(f"cupyx.{name} is not there: {_REFUSED[name]}")
    raise AttributeError(f"stride.cupyx has no {name}")


def __dir__():
    return sorted({*globals(), *__all__})
