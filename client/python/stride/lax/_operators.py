"""JAX's elementwise functions, reductions, scans and products, which promote nothing: operands have one type."""

import enum
from typing import Any, Callable, Optional, Sequence

import numpy as np

from stride import _dtypes, _elementwise, _linear_algebra, _manipulation, _ordering, _reductions, _routines, _ufunc
from stride._array import Array, array_of
from stride.lax._control import _is_value, _is_weak, _kind_text, _shape, _weak_kind

__all__ = [
    "abs",
    "acos",
    "acosh",
    "add",
    "argmax",
    "argmin",
    "asin",
    "asinh",
    "atan",
    "atan2",
    "atanh",
    "batch_matmul",
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
    "cumlogsumexp",
    "cummax",
    "cummin",
    "cumprod",
    "cumsum",
    "div",
    "dot",
    "dot_general",
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
    "reduce_and",
    "reduce_max",
    "reduce_min",
    "reduce_or",
    "reduce_prod",
    "reduce_sum",
    "reduce_xor",
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
    "sort",
    "sort_key_val",
    "sqrt",
    "square",
    "stop_gradient",
    "sub",
    "tan",
    "tanh",
    "top_k",
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
    from stride.jax import _gradients

    return _gradients.stop_gradient(x)


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


# --- choices ---


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


# --- reductions and scans ---


def _axes(name: str, x: Array, axes: Sequence[int]) -> tuple:
    axes = tuple(axes)
    if len(set(axes)) != len(axes) or any(not 0 <= one < x.ndim for one in axes):
        raise ValueError(f"lax.{name}: axes are different numbers from 0 to {x.ndim - 1}, not {axes}")
    return axes


def _axis(name: str, x: Array, axis: int) -> int:
    if not 0 <= axis < x.ndim:
        raise ValueError(f"lax.{name}: the axis is a number from 0 to {x.ndim - 1}, not {axis}")
    return axis


_ALONG_AXES = """{summary}

    Parameters
        operand: an array.
        axes: the axes, which the result lacks.
    Returns
        An array.
    Raises
        TypeError for elements of another type; ValueError for axes that the operand lacks.
    Example
        >>> stride.lax.{name}(st.ones((2, 3), dtype={dtype}), (1,)).shape
        (2,)
    """
_ALONG_AXIS = """{summary}

    Parameters
        operand: an array.
        axis: the axis.
        reverse: whether to go from the last element to the first.
    Returns
        An array of the operand's shape.
    Raises
        TypeError for elements of another type; ValueError for an axis that the operand lacks.
    Example
        >>> stride.lax.{name}(st.array([1.0, 1.0])).shape
        (2,)
    """


def _reduction(name: str, function: Callable, kinds: str, summary: str) -> Callable:
    def operator(operand: Any, axes: Sequence[int]) -> Array:
        x = _array(name, operand, kinds)
        axes = _axes(name, x, axes)
        return function(x, axes) if axes else x

    operator.__name__ = operator.__qualname__ = name
    operator.__doc__ = _ALONG_AXES.format(name=name, summary=summary, dtype="float" if "f" in kinds else "int")
    return operator


def _bitwise(name: str, of_bools: Optional[Callable]) -> Callable:
    def reduce(x: Array, axes: tuple) -> Array:
        if x.dtype.kind == "b" and of_bools is not None:
            return of_bools(x, axis=axes)
        for axis in sorted(axes, reverse=True):
            x = _ufunc.reduce(name, x, axis)
        return x

    return reduce


reduce_and = _reduction(
    "reduce_and", _bitwise("bitwise_and", _reductions.all), "biu", "The elements along axes, combined by and."
)
reduce_max = _reduction(
    "reduce_max", lambda x, axes: _reductions.max(x, axis=axes), "biuf", "The greatest elements along axes."
)
reduce_min = _reduction(
    "reduce_min", lambda x, axes: _reductions.min(x, axis=axes), "biuf", "The least elements along axes."
)
reduce_or = _reduction(
    "reduce_or", _bitwise("bitwise_or", _reductions.any), "biu", "The elements along axes, combined by or."
)
reduce_prod = _reduction(
    "reduce_prod",
    lambda x, axes: _reductions.prod(x, axis=axes, dtype=x.dtype),
    "iufc",
    "The products along axes, in the operand's type.",
)
reduce_sum = _reduction(
    "reduce_sum",
    lambda x, axes: _reductions.sum(x, axis=axes, dtype=x.dtype),
    "iufc",
    "The sums along axes, in the operand's type.",
)
reduce_xor = _reduction(
    "reduce_xor", _bitwise("bitwise_xor", None), "biu", "The elements along axes, combined by exclusive or."
)


def argmax(operand: Any, axis: int, index_dtype: Any = np.int32) -> Array:
    """Where the greatest element along an axis is.

    Parameters
        operand: an array.
        axis: the axis.
        index_dtype: the type of the result.
    Returns
        An array of integers.
    Example
        >>> stride.lax.argmax(st.array([1, 5, 2]), 0).tolist()
        1
    """
    x = _array("argmax", operand, "biuf")
    return _reductions.argmax(x, axis=_axis("argmax", x, axis)).astype(index_dtype)


def argmin(operand: Any, axis: int, index_dtype: Any = np.int32) -> Array:
    """Where the least element along an axis is.

    Parameters
        operand: an array.
        axis: the axis.
        index_dtype: the type of the result.
    Returns
        An array of integers.
    Example
        >>> stride.lax.argmin(st.array([1, 5, 2]), 0).tolist()
        0
    """
    x = _array("argmin", operand, "biuf")
    return _reductions.argmin(x, axis=_axis("argmin", x, axis)).astype(index_dtype)


def _scan(name: str, ufunc: str, kinds: str, summary: str) -> Callable:
    def operator(operand: Any, axis: int = 0, reverse: bool = False) -> Array:
        x = _array(name, operand, kinds)
        return _ufunc.accumulate(ufunc, x, _axis(name, x, axis), dtype=x.dtype, reverse=reverse)

    operator.__name__ = operator.__qualname__ = name
    operator.__doc__ = _ALONG_AXIS.format(name=name, summary=summary)
    return operator


cumlogsumexp = _scan("cumlogsumexp", "logaddexp", "f", "Logarithms of running sums of exponentials along an axis.")
cummax = _scan("cummax", "maximum", "biuf", "Running maxima along an axis.")
cummin = _scan("cummin", "minimum", "biuf", "Running minima along an axis.")
cumprod = _scan("cumprod", "multiply", "iufc", "Running products along an axis, in the operand's type.")
cumsum = _scan("cumsum", "add", "iufc", "Running sums along an axis, in the operand's type.")


def sort(operand: Any, dimension: int = -1, is_stable: bool = True, num_keys: int = 1) -> Any:
    """The elements in order along an axis; of a tuple of arrays, all in the order of the first `num_keys`.

    Parameters
        operand: an array, or a tuple of arrays of one shape.
        dimension: the axis.
        is_stable: accepted: sorting is stable.
        num_keys: how many of the arrays are compared.
    Returns
        An array, or a tuple of arrays.
    Example
        >>> stride.lax.sort(st.array([3, 1, 2])).tolist()
        [1, 2, 3]
    """
    if not isinstance(operand, (tuple, list)):
        return _ordering.sort(_array("sort", operand), axis=dimension)
    arrays = [_array("sort", one) for one in operand]
    if not 1 <= num_keys <= len(arrays):
        raise ValueError(f"lax.sort: num_keys is from 1 to the number of operands, {len(arrays)}, not {num_keys}")
    if len({one.shape for one in arrays}) > 1:
        raise TypeError(f"lax.sort takes operands of one shape, not {', '.join([_kind_text(one) for one in arrays])}")
    order = _ordering.argsort(arrays[num_keys - 1], axis=dimension, stable=True)
    for key in arrays[: num_keys - 1][::-1]:
        step = _ordering.argsort(_routines.take_along_axis(key, order, axis=dimension), axis=dimension, stable=True)
        order = _routines.take_along_axis(order, step, axis=dimension)
    return tuple(_routines.take_along_axis(one, order, axis=dimension) for one in arrays)


def sort_key_val(keys: Any, values: Any, dimension: int = -1, is_stable: bool = True) -> tuple:
    """Keys in order along an axis, and values in the order of the keys.

    Parameters
        keys: an array.
        values: an array of the same shape.
        dimension: the axis.
        is_stable: accepted: sorting is stable.
    Returns
        The keys and the values.
    Example
        >>> [one.tolist() for one in stride.lax.sort_key_val(st.array([3, 1]), st.array([7, 8]))]
        [[1, 3], [8, 7]]
    """
    return sort((keys, values), dimension, is_stable)


def top_k(operand: Any, k: int, *, axis: int = -1) -> list:
    """The `k` greatest elements along an axis, in order, and where they are (int32).

    Parameters
        operand: an array.
        k: how many.
        axis: the axis.
    Returns
        A list of two arrays: the elements and their places.
    Example
        >>> [one.tolist() for one in stride.lax.top_k(st.array([3, 1, 2]), 2)]
        [[3, 2], [0, 2]]
    """
    x = _array("top_k", operand, "biuf")
    if not -x.ndim <= axis < x.ndim:
        raise ValueError(f"lax.top_k: axis {axis} is out of range for an array of {x.ndim} axes")
    if not 0 <= k <= x.shape[axis]:
        raise ValueError(f"lax.top_k: k is from 0 to the length of the axis, {x.shape[axis]}, not {k}")
    if _kind_of(x.dtype) == "f":
        places = _first_places(x, k, axis)
        return [_routines.take_along_axis(x, places, axis=axis), places.astype(np.int32)]
    values, places = _ordering.top_k(x, k, axis=axis)
    return [values, places.astype(np.int32)]


def _first_places(x: Array, k: int, axis: int) -> Array:
    """Where the `k` greatest floats are: NaN comes first, and the first of equal ones."""
    order = _ordering.argsort(_manipulation.flip(x, axis=axis), axis=axis, stable=True)
    order = x.shape[axis] - 1 - _manipulation.flip(order, axis=axis)
    return order[(slice(None),) * (axis % x.ndim) + (slice(0, k),)]


# --- products ---


def dot(
    lhs: Any, rhs: Any, *, dimension_numbers: Any = None, precision: Any = None, preferred_element_type: Any = None
) -> Array:
    """The product of vectors and matrices; `precision` changes nothing.

    Parameters
        lhs, rhs: arrays.
        dimension_numbers: None, or those of dot_general.
        precision: changes nothing.
        preferred_element_type: the type in which it is computed.
    Returns
        An array.
    Example
        >>> stride.lax.dot(st.array([1.0, 2.0]), st.array([3.0, 4.0])).tolist()
        11.0
    """
    if dimension_numbers is not None:
        return dot_general(lhs, rhs, dimension_numbers, precision, preferred_element_type)
    lhs, rhs = (array_of(one) for one in _operands("dot", (lhs, rhs), "biufc", False))
    if not (1 <= lhs.ndim <= 2 and 1 <= rhs.ndim <= 2 and lhs.shape[-1] == rhs.shape[0]):
        raise ValueError(f"lax.dot takes vectors and matrices that fit, not the shapes {lhs.shape} and {rhs.shape}")
    return _linear_algebra.matmul(lhs, rhs, dtype=preferred_element_type, casting="unsafe")


def dot_general(
    lhs: Any,
    rhs: Any,
    dimension_numbers: Any,
    precision: Any = None,
    preferred_element_type: Any = None,
    **ignored: Any,
) -> Array:
    """Products summed over some axes, for each place of others.

    Parameters
        lhs: an array.
        rhs: an array of the same type.
        dimension_numbers: ((axes of lhs, axes of rhs) that are summed over, (axes of lhs, axes of rhs) that both
            have).
        precision: changes nothing.
        preferred_element_type: the type in which it is computed.
        ignored: JAX's other options, which change nothing.
    Returns
        An array with the axes that both have, then the others of `lhs`, then those of `rhs`.
    Raises
        TypeError for axes that do not fit.
    Example
        >>> a, b = st.ones((2, 3)), st.ones((3, 4))
        >>> stride.lax.dot_general(a, b, (([1], [0]), ([], []))).shape
        (2, 4)
    """
    lhs, rhs = (array_of(one) for one in _operands("dot_general", (lhs, rhs), "biufc", False))
    (left_sum, right_sum), (left_batch, right_batch) = dimension_numbers
    sides = []
    for name, array, summed, batch in (("lhs", lhs, left_sum, left_batch), ("rhs", rhs, right_sum, right_batch)):
        axes = [*batch, *summed]
        if len(set(axes)) != len(axes) or any(not 0 <= one < array.ndim for one in axes):
            raise TypeError(f"lax.dot_general: the axes of {name} are {tuple(axes)} of {array.ndim}")
        sides.append([one for one in range(array.ndim) if one not in axes])
    shapes = [
        [array.shape[axis] for axis in axes]
        for array, axes in ((lhs, left_sum), (rhs, right_sum), (lhs, left_batch), (rhs, right_batch))
    ]
    if shapes[0] != shapes[1] or shapes[2] != shapes[3]:
        raise TypeError(
            f"lax.dot_general: axes of {lhs.shape} and {rhs.shape} do not fit: summed ones have {shapes[0]} and "
            f"{shapes[1]} elements, those of both {shapes[2]} and {shapes[3]}"
        )
    left_free, right_free = sides
    num_batch, num_summed = int(np.prod(shapes[2])), int(np.prod(shapes[0]))
    left_shape = [lhs.shape[axis] for axis in left_free]
    right_shape = [rhs.shape[axis] for axis in right_free]
    left = _manipulation.permute_dims(lhs, (*left_batch, *left_free, *left_sum))
    right = _manipulation.permute_dims(rhs, (*right_batch, *right_sum, *right_free))
    left = _manipulation.reshape(left, (num_batch, int(np.prod(left_shape)), num_summed))
    right = _manipulation.reshape(right, (num_batch, num_summed, int(np.prod(right_shape))))
    product = _linear_algebra.matmul(left, right, dtype=preferred_element_type, casting="unsafe")
    return _manipulation.reshape(product, (*shapes[2], *left_shape, *right_shape))


def batch_matmul(lhs: Any, rhs: Any, precision: Any = None) -> Array:
    """Products of the matrices in the last two axes, for each place of the others.

    Parameters
        lhs, rhs: arrays.
        precision: changes nothing.
    Returns
        An array.
    Example
        >>> stride.lax.batch_matmul(st.ones((2, 3, 4)), st.ones((2, 4, 5))).shape
        (2, 3, 5)
    """
    lhs, rhs = (array_of(one) for one in _operands("batch_matmul", (lhs, rhs), "biufc", False))
    if lhs.ndim < 2 or lhs.ndim != rhs.ndim:
        raise ValueError(f"lax.batch_matmul takes stacks of matrices, not the shapes {lhs.shape} and {rhs.shape}")
    return _linear_algebra.matmul(lhs, rhs)
