"""cupyx.scipy.special: functions of numbers, of float32 in float32 and of all other types in float64, as SciPy has
them."""

from typing import Any

import numpy as np

from stride import _conversion, _elementwise, _manipulation, _reductions
from stride.cupy._elementwise import ElementwiseKernel

__all__ = [
    "boxcox", "boxcox1p", "cbrt", "cosdg", "cosm1", "cotdg", "digamma", "entr", "erf", "erfc", "erfcinv", "erfcx",
    "erfinv", "exp10", "exp2", "expit", "expm1", "exprel", "gamma", "gammaln", "gammasgn", "huber", "inv_boxcox",
    "inv_boxcox1p", "j0", "j1", "kl_div", "log1p", "log_expit", "log_ndtr", "log_softmax", "loggamma", "logit",
    "logsumexp", "ndtr", "ndtri", "pseudo_huber", "psi", "radian", "rel_entr", "round", "rsqrt", "sinc", "sindg",
    "softmax", "tandg", "xlog1py", "xlogy", "y0", "y1",
]  # fmt: skip

# In the type S: float32 for float16, which devices hold and do not compute with. NaN goes through comparisons as it is.
_UNARY = {
    "cbrt": ("The cube root.", "cbrt(x)"),
    "cosdg": ("The cosine of an angle in degrees.", "cospi(x / 180)"),
    "cosm1": ("cos(x) - 1.", "-2 * sin(x / 2) * sin(x / 2)"),
    "cotdg": ("The cotangent of an angle in degrees.", "special_cotdg(x, true)"),
    "digamma": ("The derivative of the logarithm of the gamma function.", "special_digamma(x)"),
    "entr": ("-x log(x); 0 at 0 and -inf below.", "x > 0 ? -x * log(x) : x == 0 ? (S)0 : x < 0 ? (S)-INFINITY : x"),
    "erf": ("The error function.", "erf(x)"),
    "erfc": ("1 - erf(x).", "erfc(x)"),
    "erfcinv": ("The inverse of erfc.", "erfcinv(x)"),
    "erfcx": ("exp(x * x) * erfc(x).", "erfcx(x)"),
    "erfinv": ("The inverse of erf.", "erfinv(x)"),
    "exp10": ("10 to the power of x.", "pow((S)10, x)"),
    "exp2": ("2 to the power of x.", "exp2(x)"),
    "expit": ("The logistic function, 1 / (1 + exp(-x)).", "1 / (1 + exp(-x))"),
    "expm1": ("exp(x) - 1.", "expm1(x)"),
    "exprel": ("(exp(x) - 1) / x; 1 at 0.", "x == 0 ? (S)1 : isinf(x) && x > 0 ? x : expm1(x) / x"),
    "gamma": ("The gamma function.", "tgamma(x)"),
    "gammaln": ("The logarithm of the absolute value of the gamma function.", "isinf(x) ? x : lgamma(x)"),
    "gammasgn": ("The sign of the gamma function; NaN at negative integers.",
                 "isnan(x) ? x : x > 0 ? (S)1 : x == 0 ? copysign((S)1, x) : floor(x) == x ? (S)NAN : "
                 "fmod(floor(x), (S)2) != 0 ? (S)-1 : (S)1"),
    "j0": ("The Bessel function of the first kind and order 0.", "j0(x)"),
    "j1": ("The Bessel function of the first kind and order 1.", "j1(x)"),
    "log1p": ("log(1 + x).", "log1p(x)"),
    "log_expit": ("The logarithm of the logistic function.", "x < 0 ? x - log1p(exp(x)) : -log1p(exp(-x))"),
    "log_ndtr": ("The logarithm of ndtr, exact where that is near 0 or 1.",
                 "x < -1 ? log(erfcx(-x * (S)0.70710678118654752) / 2) - x * x / 2 : "
                 "log1p(-erfc(x * (S)0.70710678118654752) / 2)"),
    "loggamma": ("The principal branch of the logarithm of the gamma function; NaN below 0.",
                 "x < 0 ? (S)NAN : lgamma(x)"),
    "logit": ("log(x / (1 - x)).", "log(x / (1 - x))"),
    "ndtr": ("The distribution function of the standard normal distribution.", "erfc(-x * (S)0.70710678118654752) / 2"),
    "ndtri": ("The inverse of ndtr.", "normcdfinv(x)"),
    "round": ("The nearest integer; halves to an even one.", "rint(x)"),
    "rsqrt": ("1 / sqrt(x).", "1 / sqrt(x)"),
    "sinc": ("sin(pi x) / (pi x); 1 at 0.", "x == 0 ? (S)1 : sinpi(x) / ((S)3.14159265358979324 * x)"),
    "sindg": ("The sine of an angle in degrees.", "sinpi(x / 180)"),
    "tandg": ("The tangent of an angle in degrees.", "special_tandg(x, false)"),
    "y0": ("The Bessel function of the second kind and order 0.", "y0(x)"),
    "y1": ("The Bessel function of the second kind and order 1.", "y1(x)"),
}
# Recurrence up to 10, then the asymptotic series, Abramowitz and Stegun 6.3.18; reflection below 0, 6.3.7.
# The tangent is exact at multiples of 45 degrees, and inf at its poles, as SciPy's.
_TANGENT = """
__device__ S special_%s(S degrees, bool is_cotangent) {
  double sign = degrees < 0 ? -1 : 1, x = fmod((double)fabs(degrees), 180.0);
  if (is_cotangent) {
    if (x > 90) sign = -sign;
    x = fabs(90 - x);
  } else if (x > 90) {
    sign = -sign;
    x = 180 - x;
  }
  return x == 0 ? (S)0 : x == 45 ? (S)sign : x == 90 ? (S)INFINITY : (S)(sign * tan(x * 0.017453292519943295));
}
"""
_HELPERS = {
    "cotdg": _TANGENT % "cotdg",
    "tandg": _TANGENT % "tandg",
    "digamma": """
__device__ S special_digamma(S value) {
  double x = value, result = 0;
  if (x <= 0) {
    if (x == 0) return copysign((S)INFINITY, -value);
    if (floor(x) == x) return (S)NAN;
    result = -3.14159265358979324 * cospi(x) / sinpi(x);
    x = 1 - x;
  }
  for (; x < 10; x += 1) result -= 1 / x;
  double y = 1 / (x * x);
  double series = y * (1.0 / 12 - y * (1.0 / 120 - y * (1.0 / 252 - y * (1.0 / 240 - y * (1.0 / 132 -
      y * (691.0 / 32760 - y / 12))))));
  return (S)(isinf(x) ? x : result + log(x) - 0.5 / x - series);
}
""",
}
_BINARY = {
    "boxcox": ("(x ** y - 1) / y; log(x) where y is 0.",
               "fabs(y) < (S)1e-19 ? log(x) : x == 0 ? (isnan(y) ? y : y > 0 ? -1 / y : (S)-INFINITY) : "
               "expm1(y * log(x)) / y"),
    "boxcox1p": ("((1 + x) ** y - 1) / y; log(1 + x) where y is 0.",
                 "fabs(y) < (S)1e-19 || fabs(log1p(x)) < (S)1e-289 && fabs(y) < (S)1e273 ? log1p(x) : "
                 "expm1(y * log1p(x)) / y"),
    "huber": ("y * y / 2 for |y| up to x, then x (|y| - x / 2); inf for x below 0.",
              "x < 0 ? (S)INFINITY : (S)(fabs(y) <= x ? 0.5 * y * y : x * (fabs(y) - 0.5 * x))"),
    "inv_boxcox": ("The inverse of boxcox.", "y == 0 ? exp(x) : exp(log1p(y * x) / y)"),
    "inv_boxcox1p": ("The inverse of boxcox1p.", "y == 0 ? expm1(x) : expm1(log1p(y * x) / y)"),
    "kl_div": ("x log(x / y) - x + y; y where x is 0 and y is not negative, inf outside.",
               "isnan(x) || isnan(y) ? x + y : x > 0 && y > 0 ? x * log(x / y) - x + y : x == 0 && y >= 0 ? y : "
               "(S)INFINITY"),
    "pseudo_huber": ("x * x (sqrt(1 + (y / x) ** 2) - 1); inf for x below 0.",
                     "x < 0 ? (S)INFINITY : x == 0 || y == 0 ? (S)0 : "
                     "(S)((double)x * x * expm1(log1p(((double)y / x) * ((double)y / x)) / 2))"),
    "rel_entr": ("x log(x / y); 0 where x is 0 and y is not negative, inf outside.",
                 "isnan(x) || isnan(y) ? x + y : x > 0 && y > 0 ? x * log(x / y) : x == 0 && y >= 0 ? (S)0 : "
                 "(S)INFINITY"),
    "xlog1py": ("x log(1 + y); 0 where x is 0.", "x == 0 && !isnan(y) ? (S)0 : x * log1p(y)"),
    "xlogy": ("x log(y); 0 where x is 0.", "x == 0 && !isnan(y) ? (S)0 : x * log(y)"),
}  # fmt: skip

# The results for 0.5, or for 0.5 and 2, to three digits; the docstrings' examples.
_RESULTS = {
    "boxcox": -0.375, "boxcox1p": 0.625, "cosdg": 1.0, "cosm1": -0.122, "cotdg": 114.589, "digamma": -1.964,
    "erfcinv": 0.477, "erfcx": 0.616, "erfinv": 0.477, "gammasgn": 1.0, "huber": 0.875, "inv_boxcox": 1.414,
    "inv_boxcox1p": 0.414, "j0": 0.938, "j1": 0.242, "kl_div": 0.807, "log_ndtr": -0.369, "loggamma": 0.572,
    "ndtri": 0.0, "pseudo_huber": 0.781, "round": 0.0, "sinc": 0.637, "sindg": 0.009, "tandg": 0.009, "y0": -0.445,
    "y1": -1.471,
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
_NARROW = (
    "boxcox", "boxcox1p", "entr", "erfcinv", "erfinv", "huber", "inv_boxcox", "inv_boxcox1p", "kl_div", "ndtri",
    "pseudo_huber", "rel_entr", "round",
)  # fmt: skip


def _product(x: Any, y: Any, logarithm: Any):
    return _elementwise.where((x == 0) & ~_elementwise.isnan(y), 0, x * logarithm)


# Those that take complex numbers too.
_OF_COMPLEX = {
    "expm1": _elementwise.expm1,
    "log1p": _elementwise.log1p,
    "xlog1py": lambda x, y: _product(x, y, _elementwise.log1p(y)),
    "xlogy": lambda x, y: _product(x, y, _elementwise.log(y)),
}


def _complex_result(name: str, *arrays: Any):
    """The result for complex numbers; None where all are real, or the function takes none."""
    given = [_conversion.asarray(one) for one in arrays]
    if name not in _OF_COMPLEX or all(one.dtype.kind != "c" for one in given):
        return None
    return _OF_COMPLEX[name](*given)


def _float(x: Any, name: str):
    x = _conversion.asarray(x)
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
        "typedef computed_in<T>::type S;\n#ifndef INFINITY\n#define INFINITY __int_as_float(0x7f800000)\n#endif\n"
        "#ifndef NAN\n#define NAN __int_as_float(0x7fffffff)\n#endif\n" + _HELPERS.get(name, ""),
    )


def _one(name: str, summary: str, expression: str):
    kernel = _kernel(name, "x", expression)

    def function(x, out=None):
        found = _complex_result(name, x) if out is None else None
        if found is not None:
            return found
        x = _float(x, name)
        return kernel(x) if out is None else kernel(x, out)

    function.__name__, function.__doc__ = name, _described(name, summary, "x")
    return function


def _two(name: str, summary: str, expression: str):
    kernel = _kernel(name, "xy", expression)

    def function(x, y, out=None):
        found = _complex_result(name, x, y) if out is None else None
        if found is not None:
            return found
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
psi = globals()["digamma"]


def radian(d: Any, m: Any, s: Any):
    """Degrees, minutes and seconds of an angle in radians.

    Parameters
        d, m, s: arrays of real numbers, or what become such.
    Returns
        An array of floats.
    Example
        >>> from stride.cupyx.scipy import special
        >>> round(special.radian(90, 30, 0).item(), 4)
        1.5795
    """
    d, m, s = (_float(one, "radian") for one in (d, m, s))
    return ((s / 60.0 + m) / 60.0 + d) * (np.pi / 180)


def logsumexp(a: Any, axis: Any = None, b: Any = None, keepdims: bool = False, return_sign: bool = False):
    """The logarithm of the sum of exponentials along an axis or several; over all elements by default.

    Parameters
        a: an array, or what becomes one.
        axis: an axis or several; None for all.
        b: factors of the exponentials.
        keepdims: whether the axes stay, with 1 element.
        return_sign: whether the sign of the sum is returned too, and the logarithm is of its absolute value.
    Returns
        An array of floats, or a tuple of two.
    Example
        >>> from stride.cupyx.scipy import special
        >>> round(special.logsumexp(st.array([1000.0, 1000.0])).item(), 3)
        1000.693
    """
    a = _conversion.asarray(a)
    a = a if a.dtype.kind in "fc" else a.astype(np.float64)
    if b is not None:
        a, b = _manipulation.broadcast_arrays(a, _conversion.asarray(b))
        a = _elementwise.where(b != 0, a, -np.inf)
    greatest = _reductions.max(a, axis=axis, keepdims=True)
    greatest = _elementwise.where(_elementwise.isfinite(greatest), greatest, 0)
    powers = _elementwise.exp(a - greatest)
    total = _reductions.sum(powers if b is None else b * powers, axis=axis, keepdims=keepdims)
    sign = _elementwise.sign(total) if return_sign else None
    if not keepdims:
        greatest = _manipulation.reshape(greatest, total.shape)
    found = _elementwise.log(_elementwise.absolute(total) if return_sign else total) + greatest
    return (found, sign) if return_sign else found


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
    """In the type that NumPy's exp gives, such as float16 for int8."""
    x = _conversion.asarray(x)
    return x.astype(np.exp(np.ones((), x.dtype)).dtype, copy=False)


def __getattr__(name: str):
    raise AttributeError(
        f"cupyx.scipy.special.{name} is not there: scipy.special.{name}(cp.asnumpy(x)) has it on the host"
    )
