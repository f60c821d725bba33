"""Elementwise functions: the array API's names, and NumPy's where they differ or the standard has none."""

import builtins
import functools
import operator
from typing import Tuple

import numpy as np

from stride import _errors, _graph, _ufunc, _ufunc_methods
from stride._array import _SCALARS, Array, array_of, node_of, operands_of, wrap
from stride._element_numbers import HOST_NUMBERS, of_elements
from stride._elementwise_text import described
from stride._graph import elementwise
from stride._numbers import Number


def _unary(name: str):
    def function(
        x, /, out=None, *, where=True, casting="same_kind", order="K", dtype=None, subok=True, signature=None
    ) -> Array:
        if out is None and where is True and dtype is signature is None and casting == "same_kind" and order == "K":
            if type(x) in HOST_NUMBERS and (result := of_elements(name, x)) is not None:
                return result
            return wrap(elementwise(name, operands_of((x,))))
        dtype = _ufunc.computing_type(name, (x,), casting, order, dtype, signature)
        return _ufunc.call(name, (x,), out, where, casting, dtype)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = described(name)
    function.at = _ufunc_methods.bound(_ufunc_methods.unary_at, name)  # type: ignore[attr-defined]
    return function


def _binary(name: str):
    def function(
        x1, x2, /, out=None, *, where=True, casting="same_kind", order="K", dtype=None, subok=True, signature=None
    ) -> Array:
        if out is None and where is True and dtype is signature is None and casting == "same_kind" and order == "K":
            if (
                type(x1) in HOST_NUMBERS
                and type(x2) in HOST_NUMBERS
                and (result := of_elements(name, x1, x2)) is not None
            ):
                return result
            return wrap(elementwise(name, operands_of((x1, x2))))
        dtype = _ufunc.computing_type(name, (x1, x2), casting, order, dtype, signature)
        return _ufunc.call(name, (x1, x2), out, where, casting, dtype)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = described(name)
    _ufunc_methods.add_methods(function, name)
    return function


# By the service's name; the array API's name where it differs.
UNARY = {
    "absolute": "abs", "arccos": "acos", "arccosh": "acosh", "arcsin": "asin", "arcsinh": "asinh",
    "arctan": "atan", "arctanh": "atanh", "cbrt": "", "conjugate": "conj", "cos": "", "cosh": "", "deg2rad": "",
    "degrees": "", "exp": "", "exp2": "", "expm1": "", "fabs": "", "invert": "bitwise_invert", "isfinite": "",
    "isinf": "", "isnan": "", "log": "", "log10": "", "log1p": "", "log2": "", "logical_not": "",
    "negative": "", "positive": "", "rad2deg": "", "radians": "", "reciprocal": "", "rint": "", "sign": "",
    "signbit": "", "sin": "", "sinh": "", "spacing": "", "sqrt": "", "square": "", "tan": "", "tanh": "",
    "bitwise_count": "", "ceil": "", "floor": "", "trunc": "",
}
BINARY = {
    "add": "", "arctan2": "atan2", "bitwise_and": "", "bitwise_or": "", "bitwise_xor": "", "copysign": "",
    "divide": "", "equal": "", "float_power": "", "floor_divide": "", "fmax": "", "fmin": "", "fmod": "",
    "gcd": "", "greater": "", "greater_equal": "", "heaviside": "", "hypot": "", "lcm": "", "ldexp": "",
    "left_shift": "bitwise_left_shift", "less": "", "less_equal": "", "logaddexp": "", "logaddexp2": "",
    "logical_and": "", "logical_or": "", "logical_xor": "", "maximum": "", "minimum": "", "multiply": "",
    "nextafter": "", "not_equal": "", "power": "pow", "remainder": "", "right_shift": "bitwise_right_shift",
    "subtract": "",
}

__all__ = [
    "around", "bitwise_not", "clip", "divmod", "frexp", "imag", "mod", "modf", "real", "round", "true_divide", "where",
]
for _table, _make in ((UNARY, _unary), (BINARY, _binary)):
    for _name, _public in _table.items():
        globals()[_name] = _make(_name)
        __all__.append(_name)
        if _public:
            globals()[_public] = globals()[_name]
            __all__.append(_public)


def _floor_divide(public: str):
    def function(
        x1, x2, /, out=None, *, where=True, casting="same_kind", order="K", dtype=None, subok=True, signature=None
    ) -> Array:
        dtype = _ufunc.computing_type("floor_divide", (x1, x2), casting, order, dtype, signature)
        if where is True and dtype is None and casting == "same_kind":
            return _ufunc._give(wrap(_graph.floor_divide(operands_of((x1, x2)))), out, None, casting)
        return _ufunc.call("floor_divide", (x1, x2), out, where, casting, dtype)

    function.__name__ = function.__qualname__ = public
    function.__doc__ = described(public)
    _ufunc_methods.add_methods(function, public)
    return function


floor_divide = _floor_divide("floor_divide")
mod, true_divide, bitwise_not = remainder, divide, invert  # noqa: F821, of the tables


def divmod(
    x1, x2, /, out=(None, None), *, where=True, casting="same_kind", order="K", dtype=None, subok=True, signature=None
) -> Tuple[Array, Array]:  # noqa: A001
    """The quotient, rounded down, and the remainder, element by element.

    Parameters
        x1: the dividend, an array or a number.
        x2: the divisor, an array or a number; the shapes broadcast.
        out: a pair of arrays that take the results, each of them or None.
        where: bools that broadcast; where false, elements of `out` stay.
        casting: which casts are made: no, equiv, safe, same_kind or unsafe.
        order: C, F, A or K; the elements lie in C order.
        dtype: the type in which it is computed.
        subok: accepted: arrays have no subclasses.
        signature: the types of the inputs and results, as NumPy's.
    Returns
        A tuple of two arrays: quotient and remainder.
    Raises
        DataTypeMismatch for complex numbers; ShapeMismatch where shapes do not fit.
    Example
        >>> [one.tolist() for one in st.divmod(st.array([7, -7]), 2)]
        [[3, -4], [1, 1]]
    """
    dtype = _ufunc.computing_type("divmod", (x1, x2), casting, order, dtype, signature)
    return _ufunc.call("divmod", (x1, x2), out, where, casting, dtype)


def frexp(
    x, /, out=(None, None), *, where=True, casting="same_kind", order="K", dtype=None, subok=True, signature=None
) -> Tuple[Array, Array]:
    """Mantissa in [0.5, 1) and exponent of two (int32), element by element.

    Parameters
        x: an array of real numbers.
        out: a pair of arrays that take the results, each of them or None.
        where: bools that broadcast; where false, elements of `out` stay.
        casting: which casts are made: no, equiv, safe, same_kind or unsafe.
        order: C, F, A or K; the elements lie in C order.
        dtype: the type in which it is computed.
        subok: accepted: arrays have no subclasses.
        signature: the types of the inputs and results, as NumPy's.
    Returns
        A tuple of two arrays: mantissa and exponent.
    Raises
        DataTypeMismatch for complex numbers.
    Example
        >>> [one.tolist() for one in st.frexp(st.array([6.0]))]
        [[0.75], [3]]
    """
    dtype = _ufunc.computing_type("frexp", (x,), casting, order, dtype, signature)
    return _ufunc.call("frexp", (x,), out, where, casting, dtype)


def modf(
    x, /, out=(None, None), *, where=True, casting="same_kind", order="K", dtype=None, subok=True, signature=None
) -> Tuple[Array, Array]:
    """Fraction and whole part, both with the sign of x, element by element.

    Parameters
        x: an array of real numbers.
        out: a pair of arrays that take the results, each of them or None.
        where: bools that broadcast; where false, elements of `out` stay.
        casting: which casts are made: no, equiv, safe, same_kind or unsafe.
        order: C, F, A or K; the elements lie in C order.
        dtype: the type in which it is computed.
        subok: accepted: arrays have no subclasses.
        signature: the types of the inputs and results, as NumPy's.
    Returns
        A tuple of two arrays: fraction and whole part.
    Raises
        DataTypeMismatch for complex numbers.
    Example
        >>> [one.tolist() for one in st.modf(st.array([2.5]))]
        [[0.5], [2.0]]
    """
    dtype = _ufunc.computing_type("modf", (x,), casting, order, dtype, signature)
    return _ufunc.call("modf", (x,), out, where, casting, dtype)


def round(a, decimals: int = 0, out=None) -> Array:  # noqa: A001
    """Numbers rounded to a decimal place, ties to the even digit.

    Parameters
        a: an array of numbers.
        decimals: how many digits stay after the point; a negative number rounds before it.
        out: array of the result's shape that takes it.
    Returns
        An array of `a`'s type, float16 for bools.
    Raises
        TypeError for `decimals` that is no integer.
    Example
        >>> st.round(st.array([1.25, 2.675]), 1).tolist()
        [1.2, 2.7]
    """
    from stride import _arguments

    node, decimals = operands_of((a,))[0], operator.index(decimals)
    return _arguments.give(_rounded(node, decimals), out)


around = round


def _rounded(node, decimals: int) -> Array:
    """As NumPy: by a power of ten up and down again, which for digits before the point is a division first."""
    if node.dtype.kind in "biu":
        if node.dtype.kind == "b":
            if decimals:
                raise _errors.DataTypeMismatch("round takes no bools with decimals", reason="DATA_TYPE_MISMATCH")
            return wrap(elementwise("rint", (node,)))
        if decimals >= 0:
            return _copied(node)
        return (wrap(elementwise("rint", ((wrap(node) / 10.0**-decimals)._node,))) * 10.0**-decimals).astype(node.dtype)
    if decimals == 0:
        return wrap(elementwise("rint", (node,)))
    scaled = elementwise("multiply" if decimals > 0 else "divide", (node, Number(10.0 ** builtins.abs(decimals))))
    scaled = elementwise("rint", (scaled,))
    return wrap(elementwise("divide" if decimals > 0 else "multiply", (scaled, Number(10.0 ** builtins.abs(decimals)))))


def real(val) -> Array:
    """The real part of numbers, a view; of real ones the array itself.

    Parameters
        val: an array, or what becomes one.
    Returns
        An array of real numbers.
    Example
        >>> st.real(st.array([1 + 2j])).tolist()
        [1.0]
    """
    return array_of(val).real


def imag(val) -> Array:
    """The imaginary part of numbers, a view; of real ones zeros for reading.

    Parameters
        val: an array, or what becomes one.
    Returns
        An array of real numbers.
    Example
        >>> st.imag(st.array([1 + 2j])).tolist()
        [2.0]
    """
    return array_of(val).imag


def clip(
    a, min=None, max=None, out=None, *, a_min=None, a_max=None, where=True, casting="same_kind", dtype=None
):  # noqa: A002
    """Numbers held between bounds.

    Parameters
        a: an array of numbers.
        min, max: the bounds, which broadcast with `a`; None is no bound.
        a_min, a_max: NumPy's other names of these.
        out: array of the result's shape that takes it.
        where: bools; where false, `out` keeps its element, and without one it is 0.
        casting, dtype: as of NumPy's ufuncs.
    Returns
        An array of the type that numbers and bounds have together.
    Raises
        ValueError where a bound has two names.
    Example
        >>> st.clip(st.arange(5), 1, 3).tolist()
        [1, 1, 2, 3, 3]
    """
    from stride import _arguments

    a_min, a_max, min, max = (None if one is np._NoValue else one for one in (a_min, a_max, min, max))
    if (a_min is not None or a_max is not None) and (min is not None or max is not None):
        raise ValueError("the bounds of clip are a_min and a_max or min and max")
    a = array_of(a) if dtype is None else array_of(a).astype(dtype, copy=False)
    result = _clipped(a, a_min if min is None else min, a_max if max is None else max)
    if dtype is not None:
        result = result.astype(dtype, copy=False)
    if where is not True or isinstance(out, Array):
        out = _arguments.one_out(out)
        mask = _ufunc._mask_of(where, a.session)
        return _ufunc._give(result, out, mask, casting)
    return _arguments.give(result, out, casting)


def _clipped(x, min, max) -> Array:  # noqa: A002
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
    return wrap(
        elementwise(
            "logical_or" if node.dtype.kind == "b" else "positive", (node,) * (2 if node.dtype.kind == "b" else 1)
        )
    )


def where(condition, x1=None, x2=None, /):
    """`x1` where the condition is true, else `x2`; with the condition alone the places where it is.

    Parameters
        condition: an array, of which what is not zero is true.
        x1, x2: numbers or arrays that broadcast with it.
    Returns
        An array of the type that `x1` and `x2` have together; for a condition alone the result of `nonzero`, after one
        round trip.
    Raises
        ValueError for one of `x1` and `x2` without the other.
    Example
        >>> st.where(st.array([True, False]), 1, 2).tolist()
        [1, 2]
    """
    if x1 is None and x2 is None:
        from stride import _routines

        return _routines.nonzero(condition)
    if x1 is None or x2 is None:
        raise ValueError("either both or neither of x and y should be given")
    if not isinstance(condition, Array):
        condition = array_of(condition, next((one.session for one in (x1, x2) if isinstance(one, Array)), None))
    if condition.dtype.kind != "b":
        condition = condition != 0
    return wrap(elementwise("where", operands_of((condition, x1, x2))))


for _name in __all__:
    if isinstance(getattr(np, _name, None), np.ufunc):
        _ufunc_methods.add_attributes(globals()[_name], getattr(np, _name))
