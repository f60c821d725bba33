"""The table of CUDA's mathematical functions (libdevice), one row for each, and the parts of their docstrings."""

from typing import Dict, Tuple

# By name: parameters, a summary, and the arguments of an example.
LIBDEVICE: Dict[str, Tuple[str, str, str]] = {
    "acos": ("x", "The angle in radians whose cosine x is.", "0.5"),
    "acosh": ("x", "The inverse of the hyperbolic cosine.", "1.5"),
    "asin": ("x", "The angle in radians whose sine x is.", "0.5"),
    "asinh": ("x", "The inverse of the hyperbolic sine.", "0.5"),
    "atan": ("x", "The angle in radians whose tangent x is.", "0.5"),
    "atan2": ("y, x", "The angle in radians of the point (y, x).", "0.5, 2.0"),
    "atanh": ("x", "The inverse of the hyperbolic tangent.", "0.5"),
    "cbrt": ("x", "The real cube root.", "0.5"),
    "ceil": ("x", "The least whole number that is not below x.", "0.5"),
    "copysign": ("x, y", "The number x with the sign of y.", "0.5, 2.0"),
    "cos": ("x", "The cosine of an angle in radians.", "0.5"),
    "cosh": ("x", "The hyperbolic cosine.", "0.5"),
    "cospi": ("x", "The cosine of pi * x.", "0.5"),
    "erf": ("x", "The error function.", "0.5"),
    "erfc": ("x", "One less the error function.", "0.5"),
    "erfcinv": ("x", "The inverse of erfc.", "0.5"),
    "erfcx": ("x", "The function exp(x * x) * erfc(x).", "0.5"),
    "erfinv": ("x", "The inverse of the error function.", "0.5"),
    "exp": ("x", "The number e to the power of x.", "0.5"),
    "exp10": ("x", "Ten to the power of x.", "0.5"),
    "exp2": ("x", "Two to the power of x.", "0.5"),
    "expm1": ("x", "The number e to the power of x, less one.", "0.5"),
    "fabs": ("x", "The absolute value.", "0.5"),
    "fdim": ("x, y", "The difference x - y where it is positive, else 0.", "0.5, 2.0"),
    "fdivide": ("x, y", "The quotient x / y.", "0.5, 2.0"),
    "floor": ("x", "The greatest whole number that is not above x.", "0.5"),
    "fma": ("x, y, z", "The sum x * y + z, rounded once.", "0.5, 2.0, 1.0"),
    "fmax": ("x, y", "The greater of two numbers.", "0.5, 2.0"),
    "fmin": ("x, y", "The lesser of two numbers.", "0.5, 2.0"),
    "fmod": ("x, y", "The remainder of x / y, with the sign of x.", "0.5, 2.0"),
    "hypot": ("x, y", "The length of the vector (x, y).", "0.5, 2.0"),
    "j0": ("x", "The Bessel function of the first kind of order 0.", "0.5"),
    "j1": ("x", "The Bessel function of the first kind of order 1.", "0.5"),
    "lgamma": ("x", "The logarithm of the absolute value of the gamma function.", "0.5"),
    "log": ("x", "The natural logarithm.", "0.5"),
    "log10": ("x", "The logarithm to base ten.", "0.5"),
    "log1p": ("x", "The natural logarithm of 1 + x.", "0.5"),
    "log2": ("x", "The logarithm to base two.", "0.5"),
    "logb": ("x", "The exponent of x to base two.", "0.5"),
    "nearbyint": ("x", "The nearest whole number, the even one of two.", "0.5"),
    "nextafter": ("x, y", "The next number after x towards y.", "0.5, 2.0"),
    "normcdf": ("x", "The normal distribution's probability of a number below x.", "0.5"),
    "normcdfinv": ("x", "The inverse of normcdf.", "0.5"),
    "pow": ("x, y", "The number x to the power of y.", "0.5, 2.0"),
    "rcbrt": ("x", "One divided by the cube root.", "0.5"),
    "remainder": ("x, y", "The difference of x and the nearest multiple of y.", "0.5, 2.0"),
    "rhypot": ("x, y", "One divided by the length of the vector (x, y).", "0.5, 2.0"),
    "rint": ("x", "The nearest whole number, the even one of two.", "0.5"),
    "round": ("x", "The nearest whole number, away from zero of two.", "0.5"),
    "rsqrt": ("x", "One divided by the square root.", "0.5"),
    "sin": ("x", "The sine of an angle in radians.", "0.5"),
    "sinh": ("x", "The hyperbolic sine.", "0.5"),
    "sinpi": ("x", "The sine of pi * x.", "0.5"),
    "sqrt": ("x", "The square root.", "0.5"),
    "tan": ("x", "The tangent of an angle in radians.", "0.5"),
    "tanh": ("x", "The hyperbolic tangent.", "0.5"),
    "tgamma": ("x", "The gamma function.", "0.5"),
    "trunc": ("x", "The number x without its fraction.", "0.5"),
    "y0": ("x", "The Bessel function of the second kind of order 0.", "0.5"),
    "y1": ("x", "The Bessel function of the second kind of order 1.", "0.5"),
}

# The results of the examples, to three digits. A function without a number here is one of GPUs alone.
_RESULTS: Dict[str, float] = {
    "acos": 1.047, "acosf": 1.047, "acosh": 0.962, "acoshf": 0.962, "asin": 0.524, "asinf": 0.524, "asinh": 0.481,
    "asinhf": 0.481, "atan": 0.464, "atan2": 0.245, "atan2f": 0.245, "atanf": 0.464, "atanh": 0.549, "atanhf":
    0.549, "cbrt": 0.794, "cbrtf": 0.794, "ceil": 1.0, "ceilf": 1.0, "copysign": 0.5, "copysignf": 0.5, "cos":
    0.878, "cosf": 0.878, "cosh": 1.128, "coshf": 1.128, "cospi": 0.0, "cospif": 0.0, "erf": 0.52, "erfc": 0.48,
    "erfcf": 0.48, "erff": 0.52, "exp": 1.649, "exp10": 3.162, "exp10f": 3.162, "exp2": 1.414, "exp2f": 1.414,
    "expf": 1.649, "expm1": 0.649, "expm1f": 0.649, "fabs": 0.5, "fabsf": 0.5, "fast_cosf": 0.878, "fast_exp10f":
    3.162, "fast_expf": 1.649, "fast_fdividef": 0.25, "fast_log10f": -0.301, "fast_log2f": -1.0, "fast_logf":
    -0.693, "fast_powf": 0.25, "fast_sinf": 0.479, "fast_tanf": 0.546, "fdim": 0.0, "fdimf": 0.0, "floor": 0.0,
    "floorf": 0.0, "fma": 2.0, "fmaf": 2.0, "fmax": 2.0, "fmaxf": 2.0, "fmin": 0.5, "fminf": 0.5, "fmod": 0.5,
    "fmodf": 0.5, "hypot": 2.062, "hypotf": 2.062, "j0": 0.938, "j0f": 0.938, "j1": 0.242, "j1f": 0.242, "lgamma":
    0.572, "lgammaf": 0.572, "log": -0.693, "log10": -0.301, "log10f": -0.301, "log1p": 0.405, "log1pf": 0.405,
    "log2": -1.0, "log2f": -1.0, "logb": -1.0, "logbf": -1.0, "logf": -0.693, "nearbyint": 0.0, "nearbyintf": 0.0,
    "nextafter": 0.5, "nextafterf": 0.5, "normcdf": 0.691, "normcdff": 0.691, "pow": 0.25, "powf": 0.25, "rcbrt":
    1.26, "rcbrtf": 1.26, "remainder": 0.5, "remainderf": 0.5, "rint": 0.0, "rintf": 0.0, "round": 1.0, "roundf":
    1.0, "rsqrt": 1.414, "rsqrtf": 1.414, "sin": 0.479, "sinf": 0.479, "sinh": 0.521, "sinhf": 0.521, "sinpi": 1.0,
    "sinpif": 1.0, "sqrt": 0.707, "sqrtf": 0.707, "tan": 0.546, "tanf": 0.546, "tanh": 0.462, "tanhf": 0.462,
    "tgamma": 1.772, "tgammaf": 1.772, "trunc": 0.0, "truncf": 0.0, "y0": -0.445, "y0f": -0.445, "y1": -1.471,
    "y1f": -1.471
}


def parts(name: str) -> Tuple[str, str, str, str]:
    """The parts of a function's docstring: its summary, parameters, result and example."""
    parameters, summary, arguments = _row(name)
    dtype = "float64" if name in LIBDEVICE else "float32"
    result = _RESULTS.get(name)
    remark = " Faster and less accurate." if name.startswith("fast_") else ""
    if result is None:
        return (
            f"{summary}{remark} GPUs alone have it: a kernel with it does not compile for CPU devices.",
            parameters,
            f"A {dtype}.",
            f""">>> from stride import cuda
        >>> cuda.libdevice.{name}
        <stride.cuda.libdevice.{name}>""",
        )
    return (
        summary + remark,
        parameters,
        f"A {dtype}.",
        f""">>> from stride import cuda
        >>> @cuda.jit
        ... def kernel(out):
        ...     out[0] = cuda.libdevice.{name}({arguments})
        ...
        >>> out = st.zeros(1)
        >>> kernel[1, 1](out)
        >>> round(out.item(), 3)
        {result!r}""",
    )


def _row(name: str) -> Tuple[str, str, str]:
    """The row of LIBDEVICE of a function, which its names for float32 share."""
    plain = name[len("fast_"):] if name.startswith("fast_") else name
    return LIBDEVICE[plain if plain in LIBDEVICE else plain[:-1]]
