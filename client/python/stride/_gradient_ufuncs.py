"""Derivatives of elementwise functions: a cotangent of the result gives those of the operands."""

import math
from typing import Any, Callable, Dict

import numpy as np

from stride import _creation, _elementwise as el
from stride._array import Array


def _zeros(like: Array) -> Array:
    return _creation.zeros(like.shape, dtype=like.dtype)


_LOG2, _LOG10 = math.log(2), math.log(10)


def _sign(x: Any) -> Any:
    return el.sign(x)


def _abs(g, y, x):
    if x.dtype.kind != "c":
        return (g * el.sign(x),)
    y1 = el.where(y == 0, 1, y)
    return (el.where(y == 0, 0, g * el.conj(x) / y1),)


def _split_evenly(g, y, x, other):
    """As JAX: where both are the result, each has half."""
    return el.where(x == y, el.where(other == y, g * 0.5, g), 0)


def _power(g, y, x, p):
    if isinstance(p, (int, float, np.integer, np.floating)):
        dx = _creation.zeros_like(g) if p == 0 else g * p * el.pow(x, p - 1)
        return dx, None
    is_zero = p == 0
    if not _is_float(p):
        return g * p * el.pow(x, el.where(is_zero, 1, p) - 1), None
    dx = g * p * el.pow(x, el.where(is_zero, 1, p - 1))
    base = el.where(x == 0, 1, x)
    return dx, el.where(x == 0, el.where(p > 0, 0, g * y * el.log(x)), g * y * el.log(base))


def _is_float(x: Any) -> bool:
    return (np.dtype(x.dtype).kind if hasattr(x, "dtype") else np.asarray(x).dtype.kind) in "fc"


def _where(g, y, condition, a, b):
    return None, el.where(condition, g, 0), el.where(condition, 0, g)


def _clip(g, y, x, low, high):
    return (el.where((x >= low) & (x <= high), g, 0), el.where(x < low, g, 0), el.where(x > high, g, 0))


def _share(g, y, x):
    """d log(sum of exponentials) / dx."""
    safe = el.where(el.isfinite(y), y, 0)
    return g * el.exp(el.where(el.isfinite(x), x - safe, -np.inf))


# By the service's name: (cotangent, result, inputs) -> one cotangent for each input.
UFUNCS: Dict[str, Callable] = {
    "absolute": _abs,
    "fabs": _abs,
    "negative": lambda g, y, x: (-g,),
    "positive": lambda g, y, x: (g,),
    "conjugate": lambda g, y, x: (el.conj(g) if g.dtype.kind == "c" else g,),
    "real": lambda g, y, x: (g,),
    "imag": lambda g, y, x: (g * -1j if x.dtype.kind == "c" else g * 0,),
    "exp": lambda g, y, x: (g * y,),
    "exp2": lambda g, y, x: (g * y * _LOG2,),
    "expm1": lambda g, y, x: (g * (y + 1),),
    "log": lambda g, y, x: (g / x,),
    "log2": lambda g, y, x: (g / (x * _LOG2),),
    "log10": lambda g, y, x: (g / (x * _LOG10),),
    "log1p": lambda g, y, x: (g / (x + 1),),
    "sqrt": lambda g, y, x: (g * 0.5 / y,),
    "square": lambda g, y, x: (g * 2 * x,),
    "cbrt": lambda g, y, x: (g * y / (3 * x),),
    "reciprocal": lambda g, y, x: (-g * y * y,),
    "sin": lambda g, y, x: (g * el.cos(x),),
    "cos": lambda g, y, x: (-g * el.sin(x),),
    "tan": lambda g, y, x: (g * (1 + y * y),),
    "arcsin": lambda g, y, x: (g / el.sqrt(1 - x * x),),
    "arccos": lambda g, y, x: (-g / el.sqrt(1 - x * x),),
    "arctan": lambda g, y, x: (g / (1 + x * x),),
    "sinh": lambda g, y, x: (g * el.cosh(x),),
    "cosh": lambda g, y, x: (g * el.sinh(x),),
    "tanh": lambda g, y, x: (g * (1 - y * y),),
    "arcsinh": lambda g, y, x: (g / el.sqrt(x * x + 1),),
    "arccosh": lambda g, y, x: (g / (el.sqrt(x - 1) * el.sqrt(x + 1)),),
    "arctanh": lambda g, y, x: (g / (1 - x * x),),
    "deg2rad": lambda g, y, x: (g * (math.pi / 180),),
    "radians": lambda g, y, x: (g * (math.pi / 180),),
    "rad2deg": lambda g, y, x: (g * (180 / math.pi),),
    "degrees": lambda g, y, x: (g * (180 / math.pi),),
    "erf": lambda g, y, x: (g * (2 / math.sqrt(math.pi)) * el.exp(-x * x),),
    "erfc": lambda g, y, x: (g * (-2 / math.sqrt(math.pi)) * el.exp(-x * x),),
    "add": lambda g, y, a, b: (g, g),
    "subtract": lambda g, y, a, b: (g, -g),
    "multiply": lambda g, y, a, b: (g * b, g * a),
    "divide": lambda g, y, a, b: (g / b, -g * y / b),
    "power": _power,
    "float_power": _power,
    "maximum": lambda g, y, a, b: (_split_evenly(g, y, a, b), _split_evenly(g, y, b, a)),
    "minimum": lambda g, y, a, b: (_split_evenly(g, y, a, b), _split_evenly(g, y, b, a)),
    "fmax": lambda g, y, a, b: (_split_evenly(g, y, a, b), _split_evenly(g, y, b, a)),
    "fmin": lambda g, y, a, b: (_split_evenly(g, y, a, b), _split_evenly(g, y, b, a)),
    "arctan2": lambda g, y, a, b: (g * b / (a * a + b * b), -g * a / (a * a + b * b)),
    "hypot": lambda g, y, a, b: (g * a / y, g * b / y),
    "logaddexp": lambda g, y, a, b: (_share(g, y, a), _share(g, y, b)),
    "logaddexp2": lambda g, y, a, b: (g * el.exp2(a - y), g * el.exp2(b - y)),
    "copysign": lambda g, y, a, b: (g * el.sign(a) * el.sign(y), None),
    "remainder": lambda g, y, a, b: (g, -g * el.floor(a / b)),
    "fmod": lambda g, y, a, b: (g, -g * el.trunc(a / b)),
    "ldexp": lambda g, y, a, b: (el.ldexp(g, b), None),
    "where": _where,
    "clip": _clip,
}
# Their derivative is 0 wherever there is one.
CONSTANT = {"sign", "floor", "ceil", "trunc", "rint", "floor_divide", "heaviside", "nextafter", "spacing", "modf"}
