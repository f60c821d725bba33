"""Element types: NumPy's own dtypes, and their numbers in the contract."""

import builtins

import numpy as np

from stride import _errors

bool = np.dtype(np.bool_)
int8, int16, int32, int64 = (np.dtype(f"int{n}") for n in (8, 16, 32, 64))
uint8, uint16, uint32, uint64 = (np.dtype(f"uint{n}") for n in (8, 16, 32, 64))
float16, float32, float64 = (np.dtype(f"float{n}") for n in (16, 32, 64))
complex64, complex128 = np.dtype("complex64"), np.dtype("complex128")

NUMBERS = {
    bool: 1, int8: 2, int16: 3, int32: 4, int64: 5, uint8: 6, uint16: 7, uint32: 8, uint64: 9, float16: 10, float32: 12,
    float64: 13, complex64: 14, complex128: 15,
}
try:  # NumPy has no such type of its own
    from ml_dtypes import bfloat16 as _bfloat16

    bfloat16 = np.dtype(_bfloat16)
    NUMBERS[bfloat16] = 11
except ImportError:
    bfloat16 = None
_BY_NUMBER = {number: dtype for dtype, number in NUMBERS.items()}
# Most callers give the types themselves, NumPy's classes of scalars, or Python's.
_KNOWN = {**{dtype: dtype for dtype in NUMBERS}, **{dtype.type: dtype for dtype in NUMBERS}}
_KNOWN.update({one: np.dtype(one) for one in (builtins.bool, int, float, complex)})


def dtype_of(anything) -> np.dtype:
    """np.dtype(anything) of this machine's byte order, when the service has it."""
    try:
        known = _KNOWN.get(anything)
    except TypeError:  # it is not hashable
        known = None
    if known is not None:
        return known
    dtype = np.dtype(anything).newbyteorder("=")
    if dtype not in NUMBERS:
        raise _errors.DataTypeMismatch(f"The service has no element type {dtype}")
    return dtype


def dtype_numbered(number: int) -> np.dtype:
    dtype = _BY_NUMBER.get(number)
    if dtype is None:
        raise _errors.Unimplemented(
            f"NumPy has no type for the service's element type {number} (bfloat16); the package ml_dtypes has one"
        )
    return dtype


def is_float(dtype: np.dtype) -> bool:
    return dtype.kind == "f" or dtype is bfloat16
