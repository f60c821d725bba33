"""Elementwise functions: the array API's names, and NumPy's where they differ or the standard has none."""

import functools
from typing import Tuple

import numpy as np

from stride import _graph, _ufunc
from stride._array import _SCALARS, Array, node_of, operands_of, wrap
from stride._graph import Number, elementwise


def _unary(name: str):
    def function(x, /, out=None, *, where=True, casting="same_kind", dtype=None) -> Array:
        if out is None and where is True and dtype is None and casting == "same_kind":
            return wrap(elementwise(name, operands_of((x,))))
        return _ufunc.call(name, (x,), out, where, casting, dtype)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"NumPy's `{name}`, element by element."
    function.at = functools.partial(_ufunc.unary_at, name)  # type: ignore[attr-defined]
    return function


def _binary(name: str):
    def function(x1, x2, /, out=None, *, where=True, casting="same_kind", dtype=None) -> Array:
        if out is None and where is True and dtype is None and casting == "same_kind":
            return wrap(elementwise(name, operands_of((x1, x2))))
        return _ufunc.call(name, (x1, x2), out, where, casting, dtype)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"NumPy's `{name}`, element by element; numbers take the type of the array they meet."
    _ufunc.add_methods(function, name)
    return function


# By the service's name; the array API's name where it differs.
UNARY = {
    "absolute": "abs", "arccos": "acos", "arccosh": "acosh", "arcsin": "asin", "arcsinh": "asinh", "arctan": "atan", "arctanh": "atanh",
    "cbrt": "", "conjugate": "conj", "cos": "", "cosh": "", "deg2rad": "", "degrees": "", "exp": "", "exp2": "", "expm1": "", "fabs": "",
    "invert": "bitwise_invert", "isfinite": "", "isinf": "", "isnan": "", "log": "", "log10": "", "log1p": "", "log2": "", "logical_not": "",
    "negative": "", "positive": "", "rad2deg": "", "radians": "", "reciprocal": "", "rint": "", "sign": "", "signbit": "", "sin": "",
    "sinh": "", "spacing": "", "sqrt": "", "square": "", "tan": "", "tanh": "", "bitwise_count": "", "ceil": "", "floor": "", "trunc": "",
}
BINARY = {
    "add": "", "arctan2": "atan2", "bitwise_and": "", "bitwise_or": "", "bitwise_xor": "", "copysign": "", "divide": "", "equal": "",
    "float_power": "", "floor_divide": "", "fmax": "", "fmin": "", "fmod": "", "gcd": "", "greater": "", "greater_equal": "", "heaviside": "",
    "hypot": "", "lcm": "", "ldexp": "", "left_shift": "bitwise_left_shift", "less": "", "less_equal": "", "logaddexp": "",
    "logaddexp2": "", "logical_and": "", "logical_or": "", "logical_xor": "", "maximum": "", "minimum": "", "multiply": "",
    "nextafter": "", "not_equal": "", "power": "pow", "remainder": "", "right_shift": "bitwise_right_shift", "subtract": "",
}

__all__ = ["clip", "divmod", "frexp", "imag", "modf", "real", "round", "where"]
for _table, _make in ((UNARY, _unary), (BINARY, _binary)):
    for _name, _public in _table.items():
        globals()[_name] = _make(_name)
        __all__.append(_name)
        if _public:
            globals()[_public] = globals()[_name]
            __all__.append(_public)


def _floor_divide(public: str):
    def function(x1, x2, /, out=None, *, where=True, casting="same_kind", dtype=None) -> Array:
        if where is True and dtype is None and casting == "same_kind":
            return _ufunc._give(wrap(_graph.floor_divide(operands_of((x1, x2)))), out, None, casting)
        return _ufunc.call("floor_divide", (x1, x2), out, where, casting, dtype)

    function.__name__ = function.__qualname__ = public
    function.__doc__ = "The quotient, rounded down. Where one side is infinite it is the standard's, not NumPy's."
    _ufunc.add_methods(function, public)
    return function


floor_divide = _floor_divide("floor_divide")


def divmod(x1, x2, /, out=(None, None), *, where=True, casting="same_kind", dtype=None) -> Tuple[Array, Array]:  # noqa: A001
    """The quotient, rounded down, and the remainder."""
    return _ufunc.call("divmod", (x1, x2), out, where, casting, dtype)


def frexp(x, /, out=(None, None), *, where=True, casting="same_kind", dtype=None) -> Tuple[Array, Array]:
    """Mantissa in [0.5, 1) and exponent of two (int32)."""
    return _ufunc.call("frexp", (x,), out, where, casting, dtype)


def modf(x, /, out=(None, None), *, where=True, casting="same_kind", dtype=None) -> Tuple[Array, Array]:
    """Fraction and whole part, both with the sign of x."""
    return _ufunc.call("modf", (x,), out, where, casting, dtype)


def round(x, /) -> Array:  # noqa: A001
    """To the nearest integer, ties to the even one."""
    node = operands_of((x,))[0]
    return _copied(node) if node.dtype.kind in "biu" else wrap(elementwise("rint", (node,)))


def real(x, /) -> Array:
    return wrap(elementwise("real", operands_of((x,))))


def imag(x, /) -> Array:
    return wrap(elementwise("imag", operands_of((x,))))


def clip(x, /, min=None, max=None) -> Array:  # noqa: A002
    """`x` limited to `min` and `max`, in their common type."""
    node = result = operands_of((x,))[0]
    for bound, function in ((min, "maximum"), (max, "minimum")):
        if bound is None or _is_no_bound(bound, function, node.dtype):
            continue
        bound = Number(bound) if isinstance(bound, _SCALARS) else node_of(bound, node.session)
        result = elementwise(function, (result, bound))
    return _copied(node) if result is node else wrap(result)


def _is_no_bound(bound, function: str, dtype) -> bool:
    """A Python integer that every value of an integer type is within."""
    if type(bound) is not int or dtype.kind not in "iu":
        return False
    info = np.iinfo(dtype)
    return bound <= info.min if function == "maximum" else bound >= info.max


def _copied(node) -> Array:
    """The same values in a new array, which may be fused."""
    return wrap(elementwise("logical_or" if node.dtype.kind == "b" else "positive", (node,) * (2 if node.dtype.kind == "b" else 1)))


def where(condition, x1, x2, /) -> Array:
    """`x1` where the condition is true, else `x2`."""
    return wrap(elementwise("where", operands_of((condition, x1, x2))))
