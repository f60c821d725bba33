"""JAX's elementwise functions, which promote nothing: operands have one type."""

import enum
from typing import Any, Callable, Sequence

import numpy as np

from stride import _dtypes, _elementwise
from stride._array import Array, array_of
from stride.lax._kinds import _is_value, _is_weak, _kind_text, _shape, _weak_kind

__all__ = [
    "abs",
    "acos",
    "acosh",
    "add",
    "asin",
    "asinh",
    "atan",
    "atan2",
    "atanh",
    "bitwise_and",
    "bitwise_not",
    "bitwise_or",
    "bitwise_xor",
    "cbrt",
    "ceil",
    "clamp",
    "complex",
    "conj",
    "convert_element_type",
    "cos",
    "cosh",
    "div",
    "eq",
    "exp",
    "exp2",
    "expm1",
    "floor",
    "ge",
    "gt",
    "imag",
    "integer_pow",
    "is_finite",
    "le",
    "log",
    "log1p",
    "logistic",
    "lt",
    "max",
    "min",
    "mul",
    "ne",
    "neg",
    "nextafter",
    "optimization_barrier",
    "population_count",
    "pow",
    "real",
    "reciprocal",
    "rem",
    "round",
    "RoundingMethod",
    "rsqrt",
    "select",
    "select_n",
    "shift_left",
    "shift_right_arithmetic",
    "shift_right_logical",
    "sign",
    "sin",
    "sinh",
    "sqrt",
    "square",
    "stop_gradient",
    "sub",
    "tan",
    "tanh",
]

_KINDS = {
    "b": "bools",
    "i": "signed integers",
    "u": "unsigned integers",
    "f": "floats",
    "c": "complex numbers",
}


def _array(name: str, value: Any, kinds: str = "biufc") -> Array:
    """One operand as an array."""
    if not _is_value(value):
        raise TypeError(f"lax.{name} takes arrays and numbers, not {type(value).__name__}")
    array = array_of(value)
    _check_kind(name, array, kinds)
    return array


def _kind_of(dtype: np.dtype) -> str:
    return "f" if _dtypes.bfloat16 is not None and dtype == _dtypes.bfloat16 else dtype.kind


def _check_kind(name: str, array: Array, kinds: str) -> None:
    if _kind_of(array.dtype) not in kinds:
        raise TypeError(f"lax.{name} takes arrays of {', '.join([_KINDS[one] for one in kinds])}, not of {array.dtype}")


def _operands(name: str, values: Sequence[Any], kinds: str = "biufc", is_elementwise: bool = True) -> list:
    """Operands of one type: arrays, and numbers of their kind; elementwise ones have one number of axes, or none."""
    for one in values:
        if not _is_value(one):
            raise TypeError(f"lax.{name} takes arrays and numbers, not {type(one).__name__}")
    arrays = [one if _is_weak(one) else array_of(one) for one in values]
    strong = [one for one in arrays if isinstance(one, Array)]
    if not strong:
        arrays = [array_of(one) for one in arrays]
        strong = arrays
    dtype = strong[0].dtype
    fits = all(one.dtype == dtype for one in strong) and all(
        isinstance(one, Array) or _weak_kind(one) == ("i" if dtype.kind == "u" else _kind_of(dtype)) for one in arrays
    )
    if not fits:
        raise TypeError(
            f"lax.{name} takes operands of one type, not {', '.join([_kind_text(one) for one in values])}; the "
            f"function of stride's own namespace promotes them"
        )
    _check_kind(name, strong[0], kinds)
    arrays = [one if isinstance(one, Array) else dtype.type(one) for one in arrays]
    if is_elementwise:
        ranks = {len(one.shape) for one in strong if one.shape}
        if len(ranks) > 1:
            raise TypeError(
                f"lax.{name} takes operands with one number of axes, or none: not "
                f"{', '.join([_kind_text(one) for one in values])}"
            )
    return arrays


_ELEMENTWISE = """{summary}

    Parameters
        {parameters}
    Returns
        An array.
    Raises
        TypeError for elements of another type.
    Example
        >>> x = st.array({value})
        >>> (stride.lax.{call} == stride.{same}).tolist()
        [True]
    """


def _unary(name: str, stride_name: str, kinds: str = "fc") -> Callable:
    function = getattr(_elementwise, stride_name)

    def operator(x: Any, accuracy: Any = None) -> Array:
        return function(_array(name, x, kinds))

    operator.__name__ = operator.__qualname__ = name
    operator.__doc__ = _ELEMENTWISE.format(
        summary=f"`stride.{stride_name}` of an array of {', '.join([_KINDS[one] for one in kinds])}.",
        parameters="x: an array or a number.\n        accuracy: changes nothing.",
        value="[1.0]" if "f" in kinds else "[1]", call=f"{name}(x)", same=f"{stride_name}(x)",
    )  # fmt: skip
    return operator


def _binary(name: str, stride_name: str, kinds: str = "iufc") -> Callable:
    function = getattr(_elementwise, stride_name)

    def operator(x: Any, y: Any) -> Array:
        return function(*_operands(name, (x, y), kinds))

    operator.__name__ = operator.__qualname__ = name
    operator.__doc__ = _ELEMENTWISE.format(
        summary=f"`stride.{stride_name}` of operands of one type, which is not promoted.",
        parameters="x, y: arrays or numbers.",
        value="[1.0]" if "f" in kinds else "[1]", call=f"{name}(x, x)", same=f"{stride_name}(x, x)",
    )  # fmt: skip
    return operator


abs = _unary("abs", "abs", "ifc")  # noqa: A001
acos = _unary("acos", "acos")
acosh = _unary("acosh", "acosh")
asin = _unary("asin", "asin")
asinh = _unary("asinh", "asinh")
atan = _unary("atan", "atan")
atanh = _unary("atanh", "atanh")
bitwise_not = _unary("bitwise_not", "invert", "biu")
cbrt = _unary("cbrt", "cbrt", "f")
ceil = _unary("ceil", "ceil", "f")
cos = _unary("cos", "cos")
cosh = _unary("cosh", "cosh")
exp = _unary("exp", "exp")
exp2 = _unary("exp2", "exp2")
expm1 = _unary("expm1", "expm1")
floor = _unary("floor", "floor", "f")
is_finite = _unary("is_finite", "isfinite", "f")
log = _unary("log", "log")
log1p = _unary("log1p", "log1p")
neg = _unary("neg", "negative", "iufc")
reciprocal = _unary("reciprocal", "reciprocal")
sin = _unary("sin", "sin")
sinh = _unary("sinh", "sinh")
sqrt = _unary("sqrt", "sqrt")
square = _unary("square", "square", "iufc")
tan = _unary("tan", "tan")
tanh = _unary("tanh", "tanh")

add = _binary("add", "add")
atan2 = _binary("atan2", "atan2", "f")
bitwise_and = _binary("bitwise_and", "bitwise_and", "biu")
bitwise_or = _binary("bitwise_or", "bitwise_or", "biu")
bitwise_xor = _binary("bitwise_xor", "bitwise_xor", "biu")
eq = _binary("eq", "equal", "biufc")
ge = _binary("ge", "greater_equal", "biuf")
gt = _binary("gt", "greater", "biuf")
le = _binary("le", "less_equal", "biuf")
lt = _binary("lt", "less", "biuf")
max = _binary("max", "maximum", "biufc")  # noqa: A001
min = _binary("min", "minimum", "biufc")  # noqa: A001
mul = _binary("mul", "multiply")
ne = _binary("ne", "not_equal", "biufc")
nextafter = _binary("nextafter", "nextafter", "f")
shift_left = _binary("shift_left", "left_shift", "iu")
shift_right_arithmetic = _binary("shift_right_arithmetic", "right_shift", "iu")
sub = _binary("sub", "subtract")


def real(x: Any) -> Array:
    """The real parts of complex numbers.

    Parameters
        x: an array or a number.
    Returns
        An array.
    Example
        >>> stride.lax.real(st.array([1 + 2j])).tolist()
        [1.0]
    """
    return _elementwise.real(_array("real", x, "c"))


def imag(x: Any) -> Array:
    """The imaginary parts of complex numbers.

    Parameters
        x: an array or a number.
    Returns
        An array.
    Example
        >>> stride.lax.imag(st.array([1 + 2j])).tolist()
        [2.0]
    """
    return _elementwise.imag(_array("imag", x, "c"))


def conj(x: Any, input_dtype: Any = None) -> Array:
    """The conjugates, as complex numbers.

    Parameters
        x: an array or a number.
        input_dtype: accepted.
    Returns
        An array of complex numbers.
    Example
        >>> stride.lax.conj(st.array([1 + 2j])).tolist()
        [(1-2j)]
    """
    x = _array("conj", x, "fc")
    return _elementwise.conj(x if x.dtype.kind == "c" else x.astype(np.result_type(x.dtype, np.complex64)))


def complex(x: Any, y: Any) -> Array:  # noqa: A001
    """Complex numbers of real and imaginary parts.

    Parameters
        x, y: arrays or numbers.
    Returns
        An array of complex numbers.
    Example
        >>> stride.lax.complex(st.array([1.0]), st.array([2.0])).tolist()
        [(1+2j)]
    """
    from stride import _array_attributes

    x, y = _operands("complex", (x, y), "f")
    x, y = array_of(x), array_of(y)
    return array_of(_array_attributes.complex_of(x, y)).astype(np.result_type(x.dtype, np.complex64))


def div(x: Any, y: Any) -> Array:
    """The quotient; of integers it is rounded toward zero, and by zero it has all bits set, as JAX's.

    Parameters
        x, y: arrays or numbers.
    Returns
        An array.
    Example
        >>> stride.lax.div(st.array([7, -7]), st.array([2, 2])).tolist()
        [3, -3]
    """
    x, y = _operands("div", (x, y), "iufc")
    x, y = array_of(x), array_of(y)
    if x.dtype.kind not in "iu":
        return x / y
    quotient = x // y
    if x.dtype.kind == "i":
        is_rounded = (x - quotient * y != 0) & ((x < 0) != (y < 0))
        quotient = quotient + is_rounded.astype(x.dtype)
    ones = x.dtype.type(-1) if x.dtype.kind == "i" else np.iinfo(x.dtype).max
    return _elementwise.where(y == 0, x.dtype.type(ones), quotient)


def rem(x: Any, y: Any) -> Array:
    """The remainder with the sign of `x`; of integers by zero it is `x`.

    Parameters
        x, y: arrays or numbers.
    Returns
        An array.
    Example
        >>> stride.lax.rem(st.array([7, -7]), st.array([4, 4])).tolist()
        [3, -3]
    """
    x, y = _operands("rem", (x, y), "iuf")
    x, y = array_of(x), array_of(y)
    remainder = _elementwise.fmod(x, y)
    return _elementwise.where(y == 0, x, remainder) if x.dtype.kind in "iu" else remainder


def pow(x: Any, y: Any) -> Array:  # noqa: A001
    """`x` raised to `y`, which is of the same type or of integers.

    Parameters
        x, y: arrays or numbers.
    Returns
        An array.
    Example
        >>> stride.lax.pow(st.array([3.0]), 2).tolist()
        [9.0]
    """
    x, y = _array("pow", x, "fc") if not _is_weak(x) else x, y
    if _is_weak(y) and _weak_kind(y) == "i" or isinstance(y, Array) and y.dtype.kind in "iu":
        x = array_of(x)
        return _elementwise.power(x, y if _is_weak(y) else y.astype(x.dtype))
    return _elementwise.power(*_operands("pow", (x, y), "fc"))


def integer_pow(x: Any, y: int) -> Array:
    """`x` raised to an integer.

    Parameters
        x: an array or a number.
        y: an integer.
    Returns
        An array.
    Example
        >>> stride.lax.integer_pow(st.array([3]), 2).tolist()
        [9]
    """
    x = _array("integer_pow", x, "iufc")
    if y < 0 and x.dtype.kind in "iu":
        raise TypeError(f"lax.integer_pow raises integers to powers of 0 and more, not to {y}")
    return _elementwise.power(x, int(y))


class RoundingMethod(enum.IntEnum):
    """The rounding of ties in `round`.

    Example
        >>> stride.lax.round(st.array([2.5]), stride.lax.RoundingMethod.TO_NEAREST_EVEN).tolist()
        [2.0]
    """

    AWAY_FROM_ZERO = 0
    TO_NEAREST_EVEN = 1


def round(x: Any, rounding_method: RoundingMethod = RoundingMethod.AWAY_FROM_ZERO) -> Array:  # noqa: A001
    """The nearest whole numbers.

    Parameters
        x: an array or a number.
        rounding_method: a RoundingMethod.
    Returns
        An array.
    Example
        >>> stride.lax.round(st.array([2.5, -0.5])).tolist()
        [3.0, -1.0]
    """
    x = _array("round", x, "f")
    if RoundingMethod(rounding_method) == RoundingMethod.TO_NEAREST_EVEN:
        return _elementwise.rint(x)
    whole = _elementwise.trunc(x)
    is_away = _elementwise.abs(x - whole) >= 0.5
    return _elementwise.where(is_away, whole + _elementwise.copysign(_ones(x), x), whole)


def _ones(x: Array) -> Array:
    from stride import _creation

    return _creation.ones((), x.dtype)


def rsqrt(x: Any) -> Array:
    """One divided by the square root.

    Parameters
        x: an array or a number.
    Returns
        An array.
    Example
        >>> stride.lax.rsqrt(st.array([4.0])).tolist()
        [0.5]
    """
    return _elementwise.reciprocal(_elementwise.sqrt(_array("rsqrt", x, "fc")))


def logistic(x: Any) -> Array:
    """`1 / (1 + exp(-x))`.

    Parameters
        x: an array or a number.
    Returns
        An array.
    Example
        >>> stride.lax.logistic(st.array([0.0])).tolist()
        [0.5]
    """
    x = _array("logistic", x, "fc")
    return _elementwise.reciprocal(1 + _elementwise.exp(-x))


def sign(x: Any) -> Array:
    """The sign: of floats zeros keep theirs.

    Parameters
        x: an array or a number.
    Returns
        An array.
    Example
        >>> stride.lax.sign(st.array([-3, 0, 4])).tolist()
        [-1, 0, 1]
    """
    x = _array("sign", x, "iufc")
    result = _elementwise.sign(x)
    return _elementwise.copysign(result, x) if _kind_of(x.dtype) == "f" else result


def shift_right_logical(x: Any, y: Any) -> Array:
    """A shift to the right that fills with zeros.

    Parameters
        x, y: arrays or numbers.
    Returns
        An array.
    Example
        >>> stride.lax.shift_right_logical(st.array([-1], dtype=st.int8), st.array([4], dtype=st.int8)).tolist()
        [15]
    """
    x, y = _operands("shift_right_logical", (x, y), "iu")
    x, y = array_of(x), array_of(y)
    unsigned = np.dtype(f"u{x.dtype.itemsize}")
    return _elementwise.right_shift(x.astype(unsigned), y.astype(unsigned)).astype(x.dtype)


def population_count(x: Any) -> Array:
    """The number of bits that are set.

    Parameters
        x: an array or a number.
    Returns
        An array.
    Example
        >>> stride.lax.population_count(st.array([7, 8])).tolist()
        [3, 1]
    """
    x = _array("population_count", x, "iu")
    unsigned = np.dtype(f"u{x.dtype.itemsize}")
    return _elementwise.bitwise_count(x.astype(unsigned)).astype(x.dtype)


def clamp(min: Any, x: Any, max: Any) -> Array:  # noqa: A002
    """`x`, but no less than `min` and no more than `max`, which have its shape or no axes.

    Parameters
        min: an array or a number: the least.
        x: an array or a number.
        max: an array or a number: the most.
    Returns
        An array of x's shape.
    Example
        >>> stride.lax.clamp(0, st.array([-1, 1, 5]), 3).tolist()
        [0, 1, 3]
    """
    least, x, most = _operands("clamp", (min, x, max), "biuf")
    x = array_of(x)
    for name, one in (("min", least), ("max", most)):
        if _shape(one) not in ((), x.shape):
            raise TypeError(f"lax.clamp: {name} has no axes or the shape of x, {x.shape}, not {one.shape}")
    return _elementwise.minimum(_elementwise.maximum(x, least), most)


def convert_element_type(operand: Any, new_dtype: Any) -> Array:
    """The elements in another type.

    Parameters
        operand: an array.
        new_dtype: the element type.
    Returns
        An array.
    Example
        >>> stride.lax.convert_element_type(st.array([1.5]), st.int32).tolist()
        [1]
    """
    return _array("convert_element_type", operand).astype(new_dtype)


def stop_gradient(x: Any) -> Any:
    """The pytree itself, through which no derivative goes.

    Parameters
        x: a pytree.
    Returns
        The pytree.
    Example
        >>> stride.lax.stop_gradient(st.ones(2)).tolist()
        [1.0, 1.0]
    """
    from stride.jax import _custom_gradients

    return _custom_gradients.stop_gradient(x)


def optimization_barrier(operand: Any) -> Any:
    """The pytree itself: results do not depend on fusion.

    Parameters
        operand: a pytree.
    Returns
        The pytree.
    Example
        >>> stride.lax.optimization_barrier(st.ones(2)).tolist()
        [1.0, 1.0]
    """
    return operand


def select(pred: Any, on_true: Any, on_false: Any) -> Array:
    """`on_true` where `pred` is true, else `on_false`, which have one shape and type; `pred` has it too, or no axes.

    Parameters
        pred: bools, of the cases' shape or without axes.
        on_true, on_false: arrays.
    Returns
        An array.
    Example
        >>> stride.lax.select(st.array([True, False]), st.array([1, 2]), st.array([3, 4])).tolist()
        [1, 4]
    """
    return select_n(pred, on_false, on_true)


def select_n(which: Any, *cases: Any) -> Array:
    """The elements of the case that `which`, bools or integers, has the number of: the nearest case where there is
    none of that number.

    Parameters
        which: bools or integers, of the cases' shape or without axes.
        cases: arrays of one shape and type.
    Returns
        An array.
    Example
        >>> stride.lax.select_n(st.array([1, 0]), st.array([1, 2]), st.array([3, 4])).tolist()
        [3, 2]
    """
    if not cases:
        raise TypeError("lax.select takes at least one case")
    which = _array("select", which, "biu")
    arrays = [array_of(one) for one in _operands("select", cases, "biufc")]
    if len({one.shape for one in arrays}) > 1:
        raise TypeError(f"lax.select takes cases of one shape, not {', '.join([_kind_text(one) for one in arrays])}")
    if which.shape not in ((), arrays[0].shape):
        raise TypeError(
            f"lax.select: the choice has no axes or the shape of the cases, {arrays[0].shape}, not {which.shape}"
        )
    if which.dtype.kind == "b" and len(arrays) > 2:
        raise TypeError(f"lax.select chooses one of two by bools; there are {len(arrays)}")
    if len(arrays) == 2:
        return _elementwise.where(which if which.dtype.kind == "b" else which != 0, arrays[1], arrays[0])
    result = arrays[-1]
    for i in range(len(arrays) - 2, -1, -1):
        result = _elementwise.where(which <= i, arrays[i], result)
    return result
