"""Docstrings of the functions that tables make: one row for each elementwise function, from which `described` makes
the text that `help` shows."""

from typing import Dict, Tuple

# Which elements a function takes, which it gives, and which it refuses.
_KINDS = {
    "float": (
        "real or complex numbers; integers and bools are computed in floating point",
        "floating-point numbers, complex ones for complex elements",
        "",
    ),
    "integer": ("integers or bools", "integers", "floating-point and complex numbers"),
    "ldexp": ("real numbers, and for x2 integers", "floating-point numbers", "complex numbers"),
    "number": ("numbers of any type", "the common type", ""),
    "real": ("real numbers", "the type in which it is computed", "complex numbers"),
    "realtest": ("real numbers", "bools", "complex numbers"),
    "test": ("numbers of any type", "bools", ""),
    "wide": ("numbers of any type", "float64, or complex128 for complex elements", ""),
}

# By function: a row of _KINDS, a summary, the arguments of an example, and its result as nested lists.
UNARY: Dict[str, Tuple[str, str, str, str]] = {
    "absolute": (
        "number",
        "The absolute value of each element; for a complex number its modulus.",
        "st.array([-1.5, 2.0])",
        "[1.5, 2.0]",
    ),
    "arccos": ("float", "The angle in radians whose cosine each element is, from 0 to pi.", "st.array([1.0])", "[0.0]"),
    "arccosh": ("float", "The inverse of the hyperbolic cosine; NaN below 1.", "st.array([1.0])", "[0.0]"),
    "arcsin": (
        "float",
        "The angle in radians whose sine each element is, from -pi/2 to pi/2.",
        "st.array([0.0])",
        "[0.0]",
    ),
    "arcsinh": ("float", "The inverse of the hyperbolic sine.", "st.array([0.0])", "[0.0]"),
    "arctan": (
        "float",
        "The angle in radians whose tangent each element is, from -pi/2 to pi/2.",
        "st.array([0.0])",
        "[0.0]",
    ),
    "arctanh": ("float", "The inverse of the hyperbolic tangent; infinite at -1 and 1.", "st.array([0.0])", "[0.0]"),
    "bitwise_count": (
        "integer",
        "The number of bits that are one in the absolute value of each integer, as uint8.",
        "st.array([7, 8])",
        "[3, 1]",
    ),
    "cbrt": ("real", "The real cube root of each element.", "st.array([0.0, 1.0])", "[0.0, 1.0]"),
    "ceil": ("real", "The least whole number that is not below each element.", "st.array([1.2, -1.2])", "[2.0, -1.0]"),
    "conjugate": ("number", "The complex conjugate of each element.", "st.array([1 + 2j])", "[(1-2j)]"),
    "cos": ("float", "The cosine of each angle, in radians.", "st.array([0.0])", "[1.0]"),
    "cosh": ("float", "The hyperbolic cosine of each element.", "st.array([0.0])", "[1.0]"),
    "deg2rad": ("real", "Degrees as radians.", "st.array([0.0])", "[0.0]"),
    "degrees": ("real", "Radians as degrees.", "st.array([0.0])", "[0.0]"),
    "exp": ("float", "The number e to the power of each element.", "st.array([0.0])", "[1.0]"),
    "exp2": ("float", "Two to the power of each element.", "st.array([3.0])", "[8.0]"),
    "expm1": (
        "float",
        "The number e to the power of each element, less one: exact where the element is close to 0.",
        "st.array([0.0])",
        "[0.0]",
    ),
    "fabs": ("real", "The absolute value of each real number, in floating point.", "st.array([-1, 2])", "[1.0, 2.0]"),
    "floor": (
        "real",
        "The greatest whole number that is not above each element.",
        "st.array([1.8, -1.2])",
        "[1.0, -2.0]",
    ),
    "invert": (
        "integer",
        "Each integer with all bits the other way; the opposite of a bool.",
        "st.array([0, 5])",
        "[-1, -6]",
    ),
    "isfinite": (
        "test",
        "Whether each element is neither infinite nor NaN.",
        "st.array([1.0, st.inf])",
        "[True, False]",
    ),
    "isinf": ("test", "Whether each element is infinite.", "st.array([1.0, st.inf])", "[False, True]"),
    "isnan": ("test", "Whether each element is NaN.", "st.array([1.0, st.nan])", "[False, True]"),
    "log": ("float", "The natural logarithm of each element.", "st.array([1.0])", "[0.0]"),
    "log10": ("float", "The logarithm to base ten of each element.", "st.array([1.0])", "[0.0]"),
    "log1p": (
        "float",
        "The natural logarithm of one more than each element: exact where the element is close to 0.",
        "st.array([0.0])",
        "[0.0]",
    ),
    "log2": ("float", "The logarithm to base two of each element.", "st.array([8.0])", "[3.0]"),
    "logical_not": ("test", "Whether each element is zero.", "st.array([0, 3])", "[True, False]"),
    "negative": ("number", "Each element with the opposite sign.", "st.array([1, -2])", "[-1, 2]"),
    "positive": ("number", "A copy of each element.", "st.array([1, -2])", "[1, -2]"),
    "rad2deg": ("real", "Radians as degrees.", "st.array([0.0])", "[0.0]"),
    "radians": ("real", "Degrees as radians.", "st.array([0.0])", "[0.0]"),
    "reciprocal": (
        "number",
        "One divided by each element, in the element's own type: integers are rounded towards zero.",
        "st.array([2.0, 4.0])",
        "[0.5, 0.25]",
    ),
    "rint": ("float", "The nearest whole number, the even one of two.", "st.array([0.5, 1.5])", "[0.0, 2.0]"),
    "sign": (
        "number",
        "The sign of each element: -1, 0 or 1; a complex number divided by its modulus.",
        "st.array([-2.5, 0.0, 4.0])",
        "[-1.0, 0.0, 1.0]",
    ),
    "signbit": (
        "realtest",
        "Whether the sign of each element is negative, that of -0.0 as well.",
        "st.array([-0.0, 1.0])",
        "[True, False]",
    ),
    "sin": ("float", "The sine of each angle, in radians.", "st.array([0.0])", "[0.0]"),
    "sinh": ("float", "The hyperbolic sine of each element.", "st.array([0.0])", "[0.0]"),
    "spacing": (
        "real",
        "The distance from each element to the next number of its type, away from zero.",
        "st.array([1.0], st.float32)",
        "[1.1920928955078125e-07]",
    ),
    "sqrt": (
        "float",
        "The square root that is not negative of each element; NaN for a negative real number.",
        "st.array([4.0, 9.0])",
        "[2.0, 3.0]",
    ),
    "square": ("number", "The product of each element with itself.", "st.array([3, -4])", "[9, 16]"),
    "tan": ("float", "The tangent of each angle, in radians.", "st.array([0.0])", "[0.0]"),
    "tanh": ("float", "The hyperbolic tangent of each element.", "st.array([0.0])", "[0.0]"),
    "trunc": ("real", "Each element without its fraction.", "st.array([1.8, -1.8])", "[1.0, -1.0]"),
}
BINARY: Dict[str, Tuple[str, str, str, str]] = {
    "add": ("number", "The sum of two elements; for bools whether either is true.", "st.array([1, 2]), 3", "[4, 5]"),
    "arctan2": ("real", "The angle in radians of the point (x2, x1), from -pi to pi.", "st.array([0.0]), 1.0", "[0.0]"),
    "bitwise_and": ("integer", "The bits that are one in both integers.", "st.array([6, 5]), 3", "[2, 1]"),
    "bitwise_or": ("integer", "The bits that are one in either integer.", "st.array([6, 5]), 3", "[7, 7]"),
    "bitwise_xor": (
        "integer",
        "The bits that are one in exactly one of two integers.",
        "st.array([6, 5]), 3",
        "[5, 6]",
    ),
    "copysign": ("real", "The first number with the sign of the second.", "st.array([1.0, 2.0]), -1.0", "[-1.0, -2.0]"),
    "divide": (
        "float",
        "The first element divided by the second, in floating point.",
        "st.array([1, 3]), 2",
        "[0.5, 1.5]",
    ),
    "equal": ("test", "Whether two elements are equal; NaN equals nothing.", "st.array([1, 2]), 2", "[False, True]"),
    "float_power": (
        "wide",
        "The first element to the power of the second, in float64 or complex128.",
        "st.array([2, 3]), 2",
        "[4.0, 9.0]",
    ),
    "floor_divide": (
        "real",
        "The quotient, rounded down. Where one side is infinite it is the standard's, not NumPy's.",
        "st.array([7, -7]), 2",
        "[3, -4]",
    ),
    "fmax": (
        "number",
        "The greater of two elements; the one that is not NaN where the other is.",
        "st.array([1.0, st.nan]), 0.0",
        "[1.0, 0.0]",
    ),
    "fmin": (
        "number",
        "The lesser of two elements; the one that is not NaN where the other is.",
        "st.array([1.0, st.nan]), 2.0",
        "[1.0, 2.0]",
    ),
    "fmod": ("real", "The remainder of a division, with the sign of the dividend.", "st.array([7, -7]), 3", "[1, -1]"),
    "gcd": ("integer", "The greatest common divisor of two integers.", "st.array([12, 18]), 8", "[4, 2]"),
    "greater": (
        "test",
        "Whether the first element is greater than the second.",
        "st.array([1, 3]), 2",
        "[False, True]",
    ),
    "greater_equal": (
        "test",
        "Whether the first element is greater than the second or equal.",
        "st.array([1, 2]), 2",
        "[False, True]",
    ),
    "heaviside": (
        "real",
        "The step: 0 for a negative first number, 1 for a positive one, and the second number at zero.",
        "st.array([-1.0, 0.0, 1.0]), 0.5",
        "[0.0, 0.5, 1.0]",
    ),
    "hypot": (
        "real",
        "The length of the vector (x1, x2), without overflow of the squares.",
        "st.array([3.0]), 4.0",
        "[5.0]",
    ),
    "lcm": ("integer", "The least common multiple of two integers.", "st.array([4, 6]), 10", "[20, 30]"),
    "ldexp": (
        "ldexp",
        "The first number times two to the power of the second.",
        "st.array([1.5]), st.array([2])",
        "[6.0]",
    ),
    "left_shift": (
        "integer",
        "The first integer with its bits moved to the left by the second.",
        "st.array([1, 3]), 2",
        "[4, 12]",
    ),
    "less": ("test", "Whether the first element is less than the second.", "st.array([1, 3]), 2", "[True, False]"),
    "less_equal": (
        "test",
        "Whether the first element is less than the second or equal.",
        "st.array([1, 3]), 1",
        "[True, False]",
    ),
    "logaddexp": ("real", "The logarithm of exp(x1) + exp(x2), without overflow.", "st.array([0.0]), -st.inf", "[0.0]"),
    "logaddexp2": (
        "real",
        "The logarithm to base two of 2**x1 + 2**x2, without overflow.",
        "st.array([1.0]), 1.0",
        "[2.0]",
    ),
    "logical_and": ("test", "Whether both elements are not zero.", "st.array([0, 2]), 5", "[False, True]"),
    "logical_or": ("test", "Whether either element is not zero.", "st.array([0, 2]), 0", "[False, True]"),
    "logical_xor": ("test", "Whether exactly one of two elements is not zero.", "st.array([0, 2]), 5", "[True, False]"),
    "maximum": ("number", "The greater of two elements; NaN where one is.", "st.array([1, 5]), 3", "[3, 5]"),
    "minimum": ("number", "The lesser of two elements; NaN where one is.", "st.array([1, 5]), 3", "[1, 3]"),
    "multiply": ("number", "The product of two elements.", "st.array([1, 2]), 3", "[3, 6]"),
    "nextafter": (
        "real",
        "The next number of the type after the first towards the second.",
        "st.array([1.0], st.float32), 2.0",
        "[1.0000001192092896]",
    ),
    "not_equal": (
        "test",
        "Whether two elements differ; NaN differs from everything.",
        "st.array([1, 2]), 2",
        "[True, False]",
    ),
    "power": ("number", "The first element to the power of the second.", "st.array([2, 3]), 2", "[4, 9]"),
    "remainder": (
        "real",
        "The remainder of the division that `floor_divide` does, with the sign of the divisor.",
        "st.array([7, -7]), 3",
        "[1, 2]",
    ),
    "right_shift": (
        "integer",
        "The first integer with its bits moved to the right by the second; a negative one stays negative.",
        "st.array([8, -8]), 2",
        "[2, -2]",
    ),
    "subtract": ("number", "The first element less the second.", "st.array([3, 2]), 1", "[2, 1]"),
}


def described(name: str) -> str:
    """The docstring of an elementwise function.

    Parameters
        name: a name of UNARY or of BINARY.
    Returns
        The text.
    """
    is_binary = name in BINARY
    kind, summary, arguments, result = (BINARY if is_binary else UNARY)[name]
    takes, gives, refuses = _KINDS[kind]
    inputs = (
        f"x1: an array of any shape, or a number. Elements are {takes}.\n"
        "        x2: the same; the shapes broadcast, and a number of Python takes the type of the array that it meets."
        if is_binary
        else f"x: an array of any shape, or a number. Elements are {takes}."
    )
    return f"""{summary}

    Parameters
        {inputs}
        out: an array of the result's shape that takes it.
        where: bools that broadcast; where false, `out` keeps its element, and without one it is 0.
        casting: which casts are made: no, equiv, safe, same_kind or unsafe.
        order: C, F, A or K; the elements lie in C order.
        dtype: the element type in which it is computed.
        subok: accepted: arrays have no subclasses.
        signature: the types of the inputs and the result, as NumPy's; instead of `dtype`.
    Returns
        An array of the inputs' common shape, of {gives}.
    Raises
        DataTypeMismatch for {refuses or "types that `casting` does not allow"}; ShapeMismatch where shapes do not fit.
    Example
        >>> st.{name}({arguments}).tolist()
        {result}
    """

