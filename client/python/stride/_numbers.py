"""Numbers as operands of arrays: NumPy's rules of types and ranges."""

import functools
from typing import TYPE_CHECKING, Tuple, Union

import numpy as np

from stride import _dtypes
from stride.v1 import array_pb2

if TYPE_CHECKING:
    from stride._graph import Node

_KINDS = {int: "i", float: "f", complex: "c"}


class Number:
    """A scalar operand: a Python number (weak), or a NumPy scalar with its type."""

    __slots__ = ("value", "type")

    def __init__(self, value):
        self.value = value
        kind = type(value)
        if kind is int or kind is float or kind is complex:
            self.type = kind
        elif isinstance(value, np.generic):
            self.type = _dtypes.dtype_of(value.dtype)
        else:
            self.type = _dtypes.bool if kind is bool else next(t for t in (int, float, complex) if isinstance(value, t))

    def to_proto(self) -> array_pb2.Scalar:
        scalar, value = array_pb2.Scalar(), self.value
        if isinstance(self.type, np.dtype):
            kind = self.type.kind
            if kind != "b":
                scalar.data_type = _dtypes.NUMBERS[self.type]
            value = value.item() if isinstance(value, np.generic) else value
        else:
            kind = _KINDS[self.type]
        if kind == "b":
            scalar.bool_value = bool(value)
        elif kind in "iu":
            if value < 2**63:
                scalar.int_value = value
            else:
                scalar.uint_value = value
        elif kind == "f":
            scalar.float_value = value
        else:
            scalar.complex_value.real, scalar.complex_value.imaginary = value.real, value.imag
        return scalar


_COMPARISONS = ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal")


def _fitting(name: str, number: Number, loop: np.dtype) -> Number:
    """Converts a Python integer to the type of a computation, by NumPy's rules."""
    value = number.value
    if loop.kind in "iu":
        if name in _COMPARISONS and not -(2**63) <= value < 2**64:
            return Number(
                float("inf") if value > 0 else float("-inf")
            )  # compares with each integer as the value does
        check_range(name, value, loop)
    elif loop.kind == "b":
        check_range(name, value, np.dtype(np.int64))
    elif not -(2**63) <= value < 2**64:
        return Number(float(value))  # outside the integers of the wire format
    return number


def check_numbers(name: str, operands, loop: np.dtype) -> tuple:
    """Converts Python's integers among the operands to the type of the computation."""
    return tuple([_fitting(name, one, loop) if type(one) is Number and one.type is int else one for one in operands])


def _check_exponent(exponent: Union["Node", Number]) -> None:
    """Raises for negative powers of integers, as NumPy does. An exponent that only the service knows is read."""
    if type(exponent) is Number:
        least = int(exponent.value)
    elif exponent.dtype.kind != "i" or not exponent.size:
        return
    else:
        host = exponent.cached()
        if host is None:
            if exponent.session._is_trace:
                return  # values cannot be read there
            from stride import _array, _reductions

            was_held = exponent.held
            try:
                least = int(_reductions.min(_array.wrap(exponent)))
            finally:
                exponent.held = was_held
        else:
            least = int(host.min())
    if least < 0:
        raise ValueError("Integers to negative integer powers are not allowed.")


def check_range(name: str, value: int, dtype: np.dtype) -> None:
    if name in _COMPARISONS and -(2**63) <= value < 2**64:
        return
    least, greatest = _limits(dtype)
    if not least <= value <= greatest:
        raise OverflowError(f"Python integer {value} out of bounds for {dtype}")


@functools.lru_cache(maxsize=None)
def _limits(dtype: np.dtype) -> Tuple[int, int]:
    info = np.iinfo(dtype)
    return info.min, info.max
