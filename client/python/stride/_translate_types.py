"""What the translator knows of a value: a number's type or an array's, and its text in CUDA C++."""

from dataclasses import dataclass, field
from typing import Optional, Tuple

import numpy as np

from stride import _dtypes, _errors

C_TYPES = {
    _dtypes.bool: "bool", _dtypes.int8: "signed char", _dtypes.int16: "short", _dtypes.int32: "int", _dtypes.int64: "long long",
    _dtypes.uint8: "unsigned char", _dtypes.uint16: "unsigned short", _dtypes.uint32: "unsigned int", _dtypes.uint64: "unsigned long long",
    _dtypes.float16: "float", _dtypes.float32: "float", _dtypes.float64: "double"}

BOOL, INT, FLOAT = _dtypes.bool, _dtypes.int64, _dtypes.float64


@dataclass(frozen=True)
class Scalar:
    """A number: `dtype`, or None while it is a weak literal of Python type `weak`."""

    dtype: Optional[np.dtype] = None
    weak: Optional[type] = None
    never_negative: bool = False

    def definite(self) -> "Scalar":
        if self.dtype is not None:
            return self
        return Scalar({bool: BOOL, int: INT, float: FLOAT}[self.weak], None, self.never_negative)


@dataclass(frozen=True)
class ArrayOf:
    """`root` is the parameter that its memory is; empty for shared and local arrays."""

    dtype: np.dtype
    ndim: int
    root: str = ""
    extents: Tuple[str, ...] = field(default=(), compare=False)


@dataclass
class Value:
    text: str
    type: object  # Scalar, ArrayOf
    literal: object = None  # its value, when it is known now


class Object:
    """A Python object that is no number: a module, a function, a type."""

    def __init__(self, value):
        self.value = value


def parameter_type(value) -> object:
    """The type of an argument of a kernel; part of a signature."""
    if hasattr(value, "shape") and not isinstance(value, np.generic):
        return ArrayOf(np.dtype(value.dtype), len(value.shape))
    if isinstance(value, np.generic):
        return Scalar(_dtypes.dtype_of(value.dtype))
    if isinstance(value, (bool, int, float)):
        return Scalar({bool: BOOL, int: INT, float: FLOAT}[next(t for t in (bool, int, float) if isinstance(value, t))])
    raise _errors.DataTypeMismatch(f"a kernel takes arrays and numbers, not {type(value).__name__}")


def c_type(dtype: np.dtype) -> str:
    return C_TYPES[dtype]


def memory_type(dtype: np.dtype) -> str:
    return "__half" if dtype == _dtypes.float16 else C_TYPES[dtype]


def promote(*types: Scalar) -> Scalar:
    """NumPy's, with weak literals; weak only when all are."""
    if all(one.dtype is None for one in types):
        weak = max((one.weak for one in types), key=[bool, int, float].index)
        return Scalar(None, weak)
    stand_ins = [one.dtype if one.dtype is not None else {bool: BOOL, int: 0, float: 0.0}[one.weak] for one in types]
    dtype = np.result_type(*stand_ins)
    return Scalar(dtype)
