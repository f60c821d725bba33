"""Elementwise functions: the array API's names, and NumPy's where they differ or the standard has none."""

import numpy as np

from stride._array import _SCALARS, Array, node_of, operands_of, wrap
from stride._graph import Number, elementwise


def _unary(name: str, public: str):
    def function(x, /, out=None) -> Array:
        return _give(wrap(elementwise(name, operands_of((x,)))), out)

    function.__name__ = function.__qualname__ = public
    function.__doc__ = f"NumPy's `{name}`, element by element."
    return function


def _binary(name: str, public: str):
    def function(x1, x2, /, out=None) -> Array:
        return _give(wrap(elementwise(name, operands_of((x1, x2)))), out)

    function.__name__ = function.__qualname__ = public
    function.__doc__ = f"NumPy's `{name}`, element by element; numbers take the type of the array they meet."
    return function


def _give(result: Array, out) -> Array:
    if out is None:
        return result
    from stride import _array

    return _array._assign_in_place(out, result)


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

__all__ = ["clip", "imag", "real", "round", "where"]
for _table, _make in ((UNARY, _unary), (BINARY, _binary)):
    for _name, _public in _table.items():
        globals()[_name] = _make(_name, _name)
        __all__.append(_name)
        if _public:
            globals()[_public] = _make(_name, _public)
            __all__.append(_public)


def round(x, /) -> Array:  # noqa: A001
    """To the nearest integer, ties to the even one."""
    node = operands_of((x,))[0]
    return _copied(node) if node.dtype.kind in "biu" else wrap(elementwise("rint", (node,)))


def real(x, /) -> Array:
    return wrap(elementwise("real", operands_of((x,))))


def imag(x, /) -> Array:
    return wrap(elementwise("imag", operands_of((x,))))


def clip(x, /, min=None, max=None) -> Array:  # noqa: A002
    """`x` held between `min` and `max`, in the type of `x`."""
    node = result = operands_of((x,))[0]
    for bound, function in ((min, "maximum"), (max, "minimum")):
        if bound is None or _is_no_bound(bound, function, node.dtype):
            continue
        bound = Number(bound) if isinstance(bound, _SCALARS) else node_of(bound, node.session)
        result = elementwise(function, (result, bound))
    if result is node:
        return _copied(node)
    return wrap(result).astype(node.dtype, copy=False)


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
