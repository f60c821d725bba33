"""Information about the namespace and its types."""

from dataclasses import dataclass
from typing import Any, Dict, Optional, Tuple

import numpy as np

from stride import _dtypes
from stride._array import Array
from stride._session import current_session

__all__ = ["__array_namespace_info__", "finfo", "iinfo", "isdtype"]

_KINDS = {
    "bool": "b", "signed integer": "i", "unsigned integer": "u", "integral": "iu", "real floating": "f",
    "complex floating": "c",
    "numeric": "iufc",
}


@dataclass(frozen=True)
class FloatInfo:
    bits: int
    eps: float
    max: float
    min: float
    smallest_normal: float
    dtype: np.dtype

    def __getattr__(self, name: str) -> Any:
        """Everything else that NumPy's has: tiny, resolution, precision, smallest_subnormal and so on."""
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(np.finfo(self.dtype), name)


def finfo(type, /) -> FloatInfo:  # noqa: A002
    """Limits of a float type, or of the parts of a complex one.

    Parameters
        type: a type of real or complex floating-point numbers, or an array.
    Returns
        A FloatInfo: `bits`, `eps`, `max`, `min`, `smallest_normal`, `dtype`.
    Raises
        ValueError for another type.
    Example
        >>> st.finfo(st.float32).bits
        32
    """
    info = np.finfo(type.dtype if isinstance(type, Array) else type)
    return FloatInfo(
        info.bits, float(info.eps), float(info.max), float(info.min), float(info.smallest_normal), info.dtype
    )


def iinfo(type, /):  # noqa: A002
    """Limits of an integer type, or of an array's.

    Parameters
        type: a type of integers, or an array.
    Returns
        A numpy.iinfo: `bits`, `max`, `min`, `dtype`.
    Raises
        ValueError for another type.
    Example
        >>> st.iinfo(st.int8).max
        127
    """
    return np.iinfo(type.dtype if isinstance(type, Array) else type)


def isdtype(dtype, kind) -> bool:
    """Whether a type is of a kind of the array API standard, such as "integral", is another type, or one of several.

    Parameters
        dtype: an element type.
        kind: a name such as `bool`, `signed integer`, `unsigned integer`, `integral`, `real floating`, `complex
            floating` or `numeric`; a type; or a tuple of these.
    Returns
        A bool.
    Raises
        ValueError for another kind.
    Example
        >>> st.isdtype(st.float32, "real floating")
        True
    """
    dtype = np.dtype(dtype)
    if isinstance(kind, tuple):
        return any(isdtype(dtype, one) for one in kind)
    if isinstance(kind, str):
        if kind not in _KINDS:
            raise ValueError(f"no such kind of types: {kind}; there are {', '.join(_KINDS)}")
        return ("f" if _dtypes.is_float(dtype) else dtype.kind) in _KINDS[kind]
    return dtype == np.dtype(kind)


class _Info:
    """The standard's inspection functions."""

    @staticmethod
    def capabilities() -> Dict[str, Any]:
        return {"boolean indexing": False, "data-dependent shapes": False, "max dimensions": 32}

    @staticmethod
    def default_device() -> str:
        return "auto"

    @staticmethod
    def devices() -> Tuple[str, ...]:
        return ("auto", *(device.name.replace("devices/", "", 1) for device in current_session().devices()))

    @staticmethod
    def default_dtypes(*, device: Optional[str] = None) -> Dict[str, np.dtype]:
        return {"real floating": _dtypes.float64, "complex floating": _dtypes.complex128, "integral": _dtypes.int64,
                "indexing": _dtypes.int64}

    @staticmethod
    def dtypes(*, device: Optional[str] = None, kind=None) -> Dict[str, np.dtype]:
        # float16 and bfloat16, which the service has too, are not the standard's.
        return {
            dtype.name: dtype
            for dtype in _dtypes.NUMBERS
            if dtype is not _dtypes.bfloat16 and dtype != _dtypes.float16 and (kind is None or isdtype(dtype, kind))
        }


def __array_namespace_info__() -> _Info:
    """The array API standard's description of a namespace: devices, types and capabilities.

    Returns
        An object with the methods `capabilities`, `default_device`, `default_dtypes`, `devices` and `dtypes`.
    Example
        >>> st.__array_namespace_info__().capabilities()["boolean indexing"]
        False
    """
    return _Info()
