"""Elementwise functions that NumPy computes from others: closeness, parts of complex numbers, special functions."""

import functools
from typing import Any, Optional

import numpy as np

from stride import _arguments, _casts, _dtypes, _elementwise, _errors, _inference, _reductions
from stride._array import _SCALARS, Array, array_of, host_array
from stride._elementwise import absolute, isfinite, isinf, isnan, logical_and, logical_or, where

__all__ = [
    "allclose",
    "angle",
    "array_equal",
    "array_equiv",
    "fix",
    "i0",
    "isclose",
    "iscomplex",
    "iscomplexobj",
    "isneginf",
    "isposinf",
    "isreal",
    "isrealobj",
    "nan_to_num",
    "real_if_close",
    "sinc",
]


# --- equal and close ---


def isclose(a: Any, b: Any, rtol: Any = 1e-05, atol: Any = 1e-08, equal_nan: bool = False) -> Array:
    """Whether elements differ by no more than `atol + rtol * abs(b)`.

    Parameters
        a, b: arrays that broadcast, or numbers.
        rtol, atol: numbers or arrays that broadcast with these.
        equal_nan: whether NaN is close to NaN.
    Returns
        An array of bool.
    Raises
        ShapeMismatch where they do not broadcast.
    Example
        >>> st.isclose([1.0, 2.0], [1.0 + 1e-9, 2.1]).tolist()
        [True, False]
    """
    # As in NumPy: Python's numbers are weak, including float64 scalars; other values are arrays.
    x, y, rtol, atol = (_weak_or_array(one, (a, b, rtol, atol)) for one in (a, b, rtol, atol))
    if isinstance(y, Array) and y.dtype.kind != "m":
        # Integers become floats, since the absolute value of the least one is negative.
        y = y.astype(_inference.promote(y.dtype, float), copy=False)
    elif isinstance(y, int):
        y = float(y)
    if not isinstance(x, Array) and not isinstance(y, Array):
        y = array_of(y)
    near = logical_and(absolute(x - y) <= atol + rtol * abs(y), _is_finite(y))
    result = logical_or(near, x == y)
    if equal_nan:
        result = logical_or(result, logical_and(_is_nan(x), _is_nan(y)))
    return result


def _weak_or_array(one: Any, among: tuple) -> Any:
    if isinstance(one, (int, float, complex)):
        return one
    session = next((array.session for array in among if isinstance(array, Array)), None)
    return array_of(one, session)


def _is_finite(one: Any) -> Any:
    return isfinite(one) if isinstance(one, Array) else np.isfinite(one)


def _is_nan(one: Any) -> Any:
    return isnan(one) if isinstance(one, Array) else np.isnan(one)


def allclose(a: Any, b: Any, rtol: Any = 1e-05, atol: Any = 1e-08, equal_nan: bool = False) -> bool:
    """Whether all elements are close: one round trip.

    Parameters
        a: arrays that broadcast, or numbers.
        b: arrays that broadcast, or numbers.
        rtol: numbers or arrays that broadcast with these.
        atol: numbers or arrays that broadcast with these.
        equal_nan: whether two NaN are close.
    Returns
        A bool.
    Raises
        ShapeMismatch where they do not broadcast.
    Example
        >>> st.allclose(st.ones(3), 1.0)
        True
    """
    return bool(_reductions.all(isclose(a, b, rtol, atol, equal_nan)))


def array_equal(a1: Any, a2: Any, equal_nan: bool = False) -> bool:
    """Whether two arrays have one shape and equal elements: one round trip.

    Parameters
        a1, a2: arrays.
        equal_nan: whether NaN equals NaN.
    Returns
        A bool; False for what is no array.
    Example
        >>> st.array_equal([1, 2], st.array([1, 2]))
        True
    """
    try:
        x, y = _arguments.arrays(a1, a2)
    except (TypeError, ValueError):
        return False
    if x.shape != y.shape:
        return False
    same = x == y
    if equal_nan and x.dtype.kind in "fc" and y.dtype.kind in "fc":
        same = logical_or(same, logical_and(isnan(x), isnan(y)))
    return bool(_reductions.all(same))


def array_equiv(a1: Any, a2: Any) -> bool:
    """Whether two arrays broadcast and have equal elements then: one round trip.

    Parameters
        a1: an array, or what becomes one.
        a2: another.
    Returns
        A bool.
    Raises
        DataTypeMismatch for elements that are no numbers.
    Example
        >>> st.array_equiv([1, 1], st.array([[1, 1], [1, 1]]))
        True
    """
    try:
        x, y = _arguments.arrays(a1, a2)
        _inference.broadcast(x.shape, y.shape)
    except (TypeError, ValueError):
        return False
    return bool(_reductions.all(x == y))


# --- complex numbers ---


def iscomplexobj(x: Any) -> bool:
    """Whether a number or an array is of a complex type.

    Parameters
        x: an array, or what becomes one.
    Returns
        A bool.
    Example
        >>> st.iscomplexobj(st.array([1j]))
        True
    """
    dtype = getattr(x, "dtype", None)
    return (host_array(x).dtype if dtype is None else np.dtype(dtype)).kind == "c"


def isrealobj(x: Any) -> bool:
    """Whether a number or an array is of no complex type.

    Parameters
        x: an array, or what becomes one.
    Returns
        A bool.
    Example
        >>> st.isrealobj(st.array([1.0]))
        True
    """
    return not iscomplexobj(x)


def iscomplex(x: Any) -> Array:
    """Whether the imaginary part is not zero, element by element.

    Parameters
        x: an array, or what becomes one.
    Returns
        An array of bool.
    Example
        >>> st.iscomplex([1 + 1j, 1]).tolist()
        [True, False]
    """
    array = array_of(x)
    return array.imag != 0 if array.dtype.kind == "c" else array.imag != array.imag


def isreal(x: Any) -> Array:
    """Whether the imaginary part is zero, element by element.

    Parameters
        x: an array, or what becomes one.
    Returns
        An array of bool.
    Example
        >>> st.isreal([1 + 1j, 1]).tolist()
        [False, True]
    """
    return array_of(x).imag == 0


def real_if_close(a: Any, tol: float = 100) -> Array:
    """The real parts where all imaginary parts are near zero, else the array itself: one round trip.

    Parameters
        a: an array.
        tol: how near: a number of machine epsilons, or where it is 1 or less the distance itself.
    Returns
        An array.
    Example
        >>> st.real_if_close([2.1 + 4e-14j, 5.2 + 3e-15j], tol=1000).dtype
        dtype('float64')
    """
    array = array_of(a)
    if array.dtype.kind != "c":
        return array
    limit = tol if tol <= 1 else np.finfo(array.dtype).eps * tol
    return array.real if bool(_reductions.all(absolute(array.imag) < float(limit))) else array


def angle(z: Any, deg: bool = False) -> Array:
    """The angles of complex numbers, from -pi to pi.

    Parameters
        z: an array of numbers.
        deg: whether they are in degrees.
    Returns
        An array of float.
    Raises
        DataTypeMismatch for what is no number.
    Example
        >>> st.angle([1.0, 1j], deg=True).tolist()
        [0.0, 90.0]
    """
    array = array_of(z)
    if array.dtype.kind == "c":
        result = _elementwise.arctan2(array.imag, array.real)
    else:
        result = _elementwise.arctan2(0, array)
    return result * (180 / np.pi) if deg else result


# --- infinities and NaN ---


def _infinite(x: Any, out: Any, negative: bool, name: str) -> Array:
    array = array_of(x)
    if array.dtype.kind == "c":
        raise _errors.DataTypeMismatch(
            f"{name} is of real numbers, since an infinite complex number has no sign", reason="DATA_TYPE_MISMATCH"
        )
    sign = _elementwise.signbit(array) if array.dtype.kind != "b" else array != array
    return _arguments.give(logical_and(isinf(array), sign if negative else _elementwise.logical_not(sign)), out)


def isposinf(x: Any, out: Any = None) -> Array:
    """Whether elements are positive infinity.

    Parameters
        x: an array of real numbers.
        out: array of the result's shape that takes it.
    Returns
        An array of bool.
    Raises
        DataTypeMismatch for complex numbers.
    Example
        >>> st.isposinf([float("inf"), 1.0]).tolist()
        [True, False]
    """
    return _infinite(x, out, False, "isposinf")


def isneginf(x: Any, out: Any = None) -> Array:
    """Whether elements are negative infinity.

    Parameters
        x: an array of real numbers.
        out: array of the result's shape that takes it.
    Returns
        An array of bool.
    Raises
        DataTypeMismatch for complex numbers.
    Example
        >>> st.isneginf([float("-inf"), 1.0]).tolist()
        [True, False]
    """
    return _infinite(x, out, True, "isneginf")


def nan_to_num(
    x: Any, copy: bool = True, nan: Any = 0.0, posinf: Any = None, neginf: Any = None
) -> Array:
    """Numbers with others in place of NaN and the infinities.

    Parameters
        x: an array of numbers.
        copy: False writes into `x`.
        nan, posinf, neginf: what to put; by default 0 and the greatest and least finite number of the type.
    Returns
        An array of `x`'s type.
    Raises
        ValueError where `x` is for reading and `copy` is False.
    Example
        >>> st.nan_to_num([float("nan"), 1.0]).tolist()
        [0.0, 1.0]
    """
    array = array_of(x)
    if array.dtype.kind not in "fc":
        return _casts.copy(array) if copy else array
    if array.dtype.kind == "c":
        parts = [_finite(part, nan, posinf, neginf) for part in (array.real, array.imag)]
        from stride._array_attributes import complex_of

        result = complex_of(*parts)
    else:
        result = _finite(array, nan, posinf, neginf)
    if copy:
        return result
    array[...] = result
    return array


def _finite(x: Array, nan: Any, posinf: Any, neginf: Any) -> Array:
    info = np.finfo(x.dtype)

    def value(one: Any) -> Any:
        if isinstance(one, _SCALARS):
            return np.asarray(one).astype(x.dtype)[()]
        given = array_of(one, x.session)
        if _inference.broadcast(x.shape, given.shape) != x.shape:
            raise _errors.ShapeMismatch(
                f"could not broadcast input array from shape {given.shape} into shape {x.shape}",
                reason="SHAPE_MISMATCH",
            )
        return given.astype(x.dtype)

    greatest = info.max if posinf is None else value(posinf)
    least = info.min if neginf is None else value(neginf)
    is_infinite, negative = isinf(x), x < 0
    result = where(isnan(x), value(nan), x)
    result = where(logical_and(is_infinite, negative), least, result)
    return where(logical_and(is_infinite, _elementwise.logical_not(negative)), greatest, result)


# --- special functions ---


def fix(x: Any, out: Optional[Array] = None) -> Array:
    """Numbers rounded towards zero.

    Parameters
        x: an array, or what becomes one.
        out: an array of `x`'s shape that takes the result.
    Returns
        An array of floats, float64 for integers.
    Raises
        DataTypeMismatch for complex numbers.
    Example
        >>> st.fix([2.7, -2.7]).tolist()
        [2.0, -2.0]
    """
    return _arguments.give(_elementwise.trunc(array_of(x)), out)


def sinc(x: Any) -> Array:
    """sin(pi x) / (pi x), and 1 at 0.

    Parameters
        x: an array of numbers.
    Returns
        An array of float or complex.
    Example
        >>> st.sinc([0.0]).tolist()
        [1.0]
    """
    array = _arguments.inexact(array_of(x))
    # As NumPy, which puts a small number in place of zero.
    small = np.asarray(np.finfo(array.dtype).eps, array.dtype)[()]
    y = float(np.pi) * where(array == 0, small, array)
    return _elementwise.sin(y) / y


# Where one Chebyshev series ends and the other begins, and how many terms each has for double precision.
_I0_LIMIT = 8.0
_I0_TERMS = (30, 25)


def i0(x: Any) -> Array:
    """The modified Bessel function of the first kind and order 0.

    Parameters
        x: an array of real numbers; complex ones are refused.
    Returns
        An array of float64, or of `x`'s own float type.
    Raises
        DataTypeMismatch for complex numbers.
    Example
        >>> st.i0([0.0]).tolist()
        [1.0]
    """
    array = array_of(x)
    if array.dtype.kind == "c":
        raise _errors.DataTypeMismatch("i0 not supported for complex values", reason="DATA_TYPE_MISMATCH")
    array = absolute(_arguments.inexact(array))
    low, high = _bessel_series()
    small = _elementwise.exp(array) * _clenshaw(array / 2.0 - 2.0, low)
    safe = where(array <= _I0_LIMIT, np.asarray(_I0_LIMIT, array.dtype)[()], array)
    large = _elementwise.exp(array) * _clenshaw(32.0 / safe - 2.0, high) / _elementwise.sqrt(safe)
    return where(array <= _I0_LIMIT, small, large)


def _clenshaw(x: Array, coefficients: Any) -> Array:
    before = previous = None
    current: Any = float(coefficients[0])
    for one in coefficients[1:]:
        before, previous = previous, current
        current = x * previous - (0.0 if before is None else before) + float(one)
    return 0.5 * (current - before)


@functools.lru_cache(maxsize=1)
def _bessel_series():
    """Coefficients, highest first: of exp(-x) I0(x) up to the limit, in x, and of that times sqrt(x) beyond, in 1/x.
    They are computed in the widest float that the host has."""
    few, many = _I0_TERMS
    nodes, more = _nodes(few), _nodes(many)
    inverse = (more + 1) / 2 / _I0_LIMIT
    return (
        _coefficients(_scaled_bessel((nodes + 1) * (_I0_LIMIT / 2))),
        _coefficients(_scaled_bessel(1 / inverse) / np.sqrt(inverse)),
    )


def _half_turn(count: int) -> np.ndarray:
    """As many angles in the middle of equal parts."""
    pi = np.arctan(np.longdouble(1)) * 4
    return (np.arange(count, dtype=np.longdouble) + np.longdouble(0.5)) * pi / count


def _nodes(count: int) -> np.ndarray:
    return np.cos(_half_turn(count))


def _scaled_bessel(x: np.ndarray) -> np.ndarray:
    """exp(-x) I0(x): the mean of exp(x (cos t - 1)) over half a turn, by the midpoint rule, which is exact here."""
    halves = np.sin(_half_turn(4096) / 2)
    return np.exp(-2 * x[:, None] * (halves * halves)).mean(axis=1)


def _coefficients(values: np.ndarray) -> np.ndarray:
    count = len(values)
    turns = _half_turn(count)
    found = [2 * np.sum(values * np.cos(k * turns)) / count for k in range(count)]
    return np.array(found[::-1], np.float64)
