"""cupyx.scipy.special: functions of numbers, of float32 in float32 and of all other types in float64, as SciPy has
them."""

from typing import Any

import numpy as np

from stride import _creation, _elementwise, _reductions
from stride.cupy._elementwise import ElementwiseKernel

__all__ = [
    "cbrt", "entr", "erf", "erfc", "exp10", "exp2", "expit", "expm1", "exprel", "gamma", "gammaln", "log1p",
    "log_expit", "log_softmax", "logit", "loggamma", "ndtr", "rel_entr", "rsqrt", "softmax", "xlog1py", "xlogy",
]  # fmt: skip

# In the type S: float32 for float16, which devices hold and do not compute with. NaN goes through comparisons as it is.
_UNARY = {
    "cbrt": ("The cube root.", "cbrt(x)"),
    "entr": ("-x log(x); 0 at 0 and -inf below.", "x > 0 ? -x * log(x) : x == 0 ? (S)0 : x < 0 ? (S)-INFINITY : x"),
    "erf": ("The error function.", "erf(x)"),
    "erfc": ("1 - erf(x).", "erfc(x)"),
    "exp10": ("10 to the power of x.", "pow((S)10, x)"),
    "exp2": ("2 to the power of x.", "exp2(x)"),
    "expit": ("The logistic function, 1 / (1 + exp(-x)).", "1 / (1 + exp(-x))"),
    "expm1": ("exp(x) - 1.", "expm1(x)"),
    "exprel": ("(exp(x) - 1) / x; 1 at 0.", "x == 0 ? (S)1 : isinf(x) && x > 0 ? x : expm1(x) / x"),
    "gamma": ("The gamma function.", "tgamma(x)"),
    "gammaln": ("The logarithm of the absolute value of the gamma function.", "lgamma(x)"),
    "log1p": ("log(1 + x).", "log1p(x)"),
    "log_expit": ("The logarithm of the logistic function.", "x < 0 ? x - log1p(exp(x)) : -log1p(exp(-x))"),
    "logit": ("log(x / (1 - x)).", "log(x / (1 - x))"),
    "ndtr": ("The distribution function of the standard normal distribution.", "erfc(-x * (S)0.70710678118654752) / 2"),
    "rsqrt": ("1 / sqrt(x).", "1 / sqrt(x)"),
}
_BINARY = {
    "rel_entr": ("x log(x / y); 0 where x is 0 and y is not negative, inf outside.",
                 "isnan(x) || isnan(y) ? x + y : x > 0 && y > 0 ? x * log(x / y) : x == 0 && y >= 0 ? (S)0 : "
                 "(S)INFINITY"),
    "xlog1py": ("x log(1 + y); 0 where x is 0.", "x == 0 && !isnan(y) ? (S)0 : x * log1p(y)"),
    "xlogy": ("x log(y); 0 where x is 0.", "x == 0 && !isnan(y) ? (S)0 : x * log(y)"),
}  # fmt: skip

# The results for 0.5, or for 0.5 and 2, to three digits; the docstrings' examples.
_RESULTS = {
    "cbrt": 0.794, "entr": 0.347, "erf": 0.52, "erfc": 0.48, "exp10": 3.162, "exp2": 1.414, "expit": 0.622, "expm1":
    0.649, "exprel": 1.297, "gamma": 1.772, "gammaln": 0.572, "log1p": 0.405, "log_expit": -0.474, "logit": 0.0,
    "ndtr": 0.691, "rsqrt": 1.414, "rel_entr": -0.693, "xlog1py": 0.549, "xlogy": 0.347,
}


def _described(name: str, summary: str, parameters: str) -> str:
    arguments = "st.array([0.5])" if parameters == "x" else "st.array([0.5]), st.array([2.0])"
    inputs = parameters.split(", ")
    listed = "".join(f"        {one}: an array of real numbers, or what becomes one.\n" for one in inputs)
    return f"""{summary}

    Parameters
{listed}        out: an array of the result's shape that takes it.
    Returns
        An array of floats, float64 for integers.
    Raises
        ShapeMismatch where shapes do not fit.
    Example
        >>> from stride.cupyx.scipy import special
        >>> round(special.{name}({arguments}).item(), 3)
        {_RESULTS[name]!r}
    """


# SciPy computes these in float32 wherever it holds all values of the type.
_NARROW = ("entr", "rel_entr")


def _float(x: Any, name: str):
    x = _creation.asarray(x)
    if x.dtype.kind == "c":
        raise TypeError(f"special.{name} is of real numbers; scipy.special.{name}(cp.asnumpy(x)) may take complex ones")
    is_single = np.can_cast(x.dtype, np.float32) if name in _NARROW else x.dtype == np.float32
    return x.astype(np.float32 if is_single else np.float64, copy=False)


def _kernel(name: str, parameters: str, expression: str) -> ElementwiseKernel:
    values = "".join(f"S {one} = (S)given_{one}; " for one in parameters)
    return ElementwiseKernel(
        ", ".join(f"T given_{one}" for one in parameters),
        "T result",
        f"{values}result = (T)({expression})",
        f"special_{name}",
        preamble="template <class T> struct computed_in { typedef float type; };\n"
        "template <> struct computed_in<double> { typedef double type; };\n"
        "typedef computed_in<T>::type S;\n#ifndef INFINITY\n#define INFINITY __int_as_float(0x7f800000)\n#endif",
    )


def _one(name: str, summary: str, expression: str):
    kernel = _kernel(name, "x", expression)

    def function(x, out=None):
        x = _float(x, name)
        return kernel(x) if out is None else kernel(x, out)

    function.__name__, function.__doc__ = name, _described(name, summary, "x")
    return function


def _two(name: str, summary: str, expression: str):
    kernel = _kernel(name, "xy", expression)

    def function(x, y, out=None):
        x, y = _float(x, name), _float(y, name)
        dtype = np.result_type(x.dtype, y.dtype)
        x, y = x.astype(dtype, copy=False), y.astype(dtype, copy=False)
        return kernel(x, y) if out is None else kernel(x, y, out)

    function.__name__, function.__doc__ = name, _described(name, summary, "x, y")
    return function


for _name, (_summary, _expression) in _UNARY.items():
    globals()[_name] = _one(_name, _summary, _expression)
for _name, (_summary, _expression) in _BINARY.items():
    globals()[_name] = _two(_name, _summary, _expression)
loggamma = globals()["gammaln"]


def softmax(x: Any, axis: Any = None):
    """exp(x) / sum(exp(x)) along an axis or several; over all elements by default.

    Parameters
        x: an array, or what becomes one.
        axis: an axis or several; None for all.
    Returns
        An array of floats.
    Example
        >>> from stride.cupyx.scipy import special
        >>> special.softmax(st.array([0.0, 0.0])).tolist()
        [0.5, 0.5]
    """
    x = _floats(x)
    powers = _elementwise.exp(x - _reductions.max(x, axis=axis, keepdims=True))
    return powers / _reductions.sum(powers, axis=axis, keepdims=True)


def log_softmax(x: Any, axis: Any = None):
    """The logarithm of softmax, exact where softmax is near 0.

    Parameters
        x: an array, or what becomes one.
        axis: an axis or several; None for all.
    Returns
        An array of floats.
    Example
        >>> from stride.cupyx.scipy import special
        >>> special.log_softmax(st.array([0.0, -1000.0])).tolist()
        [0.0, -1000.0]
    """
    x = _floats(x)
    greatest = _reductions.max(x, axis=axis, keepdims=True)
    shifted = x - _elementwise.where(_elementwise.isfinite(greatest), greatest, 0)
    return shifted - _elementwise.log(_reductions.sum(_elementwise.exp(shifted), axis=axis, keepdims=True))


def _floats(x: Any):
    x = _creation.asarray(x)
    return x if x.dtype.kind in "fc" else x.astype(np.float64)


def __getattr__(name: str):
    raise AttributeError(
        f"cupyx.scipy.special.{name} is not there: scipy.special.{name}(cp.asnumpy(x)) has it on the host"
    )
