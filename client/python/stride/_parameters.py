"""Parameters of distributions: what is checked on the host, and the shapes that they and `size=` give together."""

import operator
from typing import Optional, Union

import numpy as np

from stride import _dtypes, _errors, _inference
from stride._array import Array, host_array
from stride._creation import _shape
from stride._element_numbers import Element

Parameter = Union[float, np.ndarray, Array]


def parameter(value, name: str) -> Parameter:
    """A float, a host array of float64, or an array of the service as it is. Raises TypeError for what is not real
    numbers."""
    if type(value) is Element and value.dtype.kind != "c":
        return float(value)
    if isinstance(value, Array):
        if value.dtype.kind == "c":
            raise _errors.DataTypeMismatch(
                f"{name} is of real numbers, not of {value.dtype}", reason="DATA_TYPE_MISMATCH"
            )
        return value
    if type(value) is float or type(value) is int:
        return float(value)
    host = host_array(value)
    if host.dtype.kind not in "biuf":
        raise _errors.DataTypeMismatch(f"{name} is of real numbers, not of {host.dtype}", reason="DATA_TYPE_MISMATCH")
    return host.astype(float) if host.ndim else float(host)


def known(value: Parameter):
    """The numbers, where the host has them; None for those that only the device has."""
    return value._node.cached() if isinstance(value, Array) else value


def _refuse(name: str, condition: str) -> None:
    raise ValueError(f"{name} {condition}")


def non_negative(value, name: str) -> Parameter:
    """Not below 0; NaN is let through, as in NumPy, and negative zero is refused."""
    value = parameter(value, name)
    if type(value) is float and value > 0:
        return value
    numbers = known(value)
    # Integers that are arrays have no sign bit.
    if numbers is not None and np.any(np.signbit(np.multiply(numbers, 1.0)) & ~np.isnan(numbers)):
        _refuse(name, "< 0")
    return value


def positive(value, name: str) -> Parameter:
    """Above 0, or NaN."""
    value = parameter(value, name)
    numbers = known(value)
    if numbers is not None and np.any(np.less_equal(numbers, 0)):
        _refuse(name, "<= 0")
    return value


def within(value, name: str, low: float, high: float, has_low: bool = True, has_high: bool = True) -> Parameter:
    """Between the bounds, with them unless they are excluded; NaN is refused."""
    value = parameter(value, name)
    numbers = known(value)
    if numbers is not None:
        inside = (np.greater_equal if has_low else np.greater)(numbers, low) & (
            np.less_equal if has_high else np.less
        )(numbers, high)
        if not np.all(inside):
            _refuse(name, f"is not within {'[' if has_low else '('}{low:g}, {high:g}{']' if has_high else ')'}")
    return value


def whole(value, name: str) -> Parameter:
    """Counts: not below 0. A float is cut to a whole number, as NumPy does; one in an array must be one."""
    if isinstance(value, Array):
        value = parameter(value, name)
        numbers = known(value)
        if numbers is not None and not np.all(numbers >= 0):
            _refuse(name, "< 0")
        return value
    host = host_array(value)
    if host.dtype.kind not in "biuf" or host.ndim and host.dtype.kind == "f" and not np.all(host == np.floor(host)):
        raise _errors.DataTypeMismatch(f"{name} is of whole numbers, not of {host.dtype}", reason="DATA_TYPE_MISMATCH")
    if not np.all(host >= 0):
        _refuse(name, "< 0")
    return host.astype(float) if host.ndim else float(int(host))


def are_numbers(*values) -> bool:
    return all(type(one) is float for one in values)


def shape_of(size, *parameters) -> tuple:
    """`size`, or the shape that the parameters broadcast to; they must fit the size."""
    common = _inference.broadcast((), *(one.shape for one in parameters if isinstance(one, (Array, np.ndarray))))
    if size is None:
        return common
    shape = _shape(size)
    if common and (len(common) > len(shape) or any(n != m and n != 1 for n, m in zip(common[::-1], shape[::-1]))):
        raise _errors.ShapeMismatch(
            f"Output size {shape} is not compatible with broadcast dimensions of inputs {common}",
            reason="SHAPE_MISMATCH",
        )
    return shape


def real_type(dtype) -> np.dtype:
    dtype = _dtypes.dtype_of(dtype)
    if dtype.kind != "f":
        raise _errors.DataTypeMismatch(f"such numbers are floats, not {dtype}")
    return dtype


def target(size, dtype: np.dtype, out: Optional[Array]):
    """The shape requested by `size=` and `out=`, which must agree."""
    if out is None:
        return size
    if not isinstance(out, Array):
        raise TypeError(f"out= is a stride array, not {type(out).__name__}")
    if out.dtype != dtype:
        raise _errors.DataTypeMismatch(
            f"out= is of {out.dtype}, the numbers are of {dtype}", reason="DATA_TYPE_MISMATCH"
        )
    if size is not None and _shape(size) != out.shape:
        raise _errors.ShapeMismatch(
            f"size={_shape(size)} differs from the shape of out=, {out.shape}", reason="SHAPE_MISMATCH"
        )
    return out.shape


def count_of(value, name: str) -> int:
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"{name} is a whole number, not {type(value).__name__}") from None
    if number < 0:
        _refuse(name, "< 0")
    return number
