"""Half precision under the names that Numba's `cuda.fp16` has: `cuda.fp16.hadd(x, y)` in a kernel. Each computes in
float32 and rounds its result to float16 once, which is what a GPU's instruction gives."""

import math

from stride._signatures import TYPES
from stride.cuda import libdevice

_half, _single = TYPES["float16"], TYPES["float32"]

__all__ = [
    "habs", "hadd", "hceil", "hcos", "hdiv", "heq", "hexp", "hexp10", "hexp2", "hfloor", "hfma", "hge", "hgt", "hle",
    "hlog", "hlog10", "hlog2", "hlt", "hmax", "hmin", "hmul", "hne", "hneg", "hrcp", "hrint", "hrsqrt", "hsin", "hsqrt",
    "hsub", "htrunc",
]  # fmt: skip


def hadd(a, b):
    """a + b."""
    return _half(_single(a) + _single(b))


def hsub(a, b):
    """a - b."""
    return _half(_single(a) - _single(b))


def hmul(a, b):
    """a * b."""
    return _half(_single(a) * _single(b))


def hdiv(a, b):
    """a / b."""
    return _half(_single(a) / _single(b))


def hfma(a, b, c):
    """a * b + c, rounded once."""
    return _half(float(a) * float(b) + float(c))  # exact in float64 but for the last rounding


def hneg(a):
    """-a."""
    return _half(-_single(a))


def habs(a):
    """The absolute value."""
    return _half(abs(_single(a)))


def heq(a, b):
    """Whether a == b."""
    return _single(a) == _single(b)


def hne(a, b):
    """Whether a != b."""
    return _single(a) != _single(b)


def hge(a, b):
    """Whether a >= b."""
    return _single(a) >= _single(b)


def hgt(a, b):
    """Whether a > b."""
    return _single(a) > _single(b)


def hle(a, b):
    """Whether a <= b."""
    return _single(a) <= _single(b)


def hlt(a, b):
    """Whether a < b."""
    return _single(a) < _single(b)


def hmax(a, b):
    """The greater; of a number and NaN the number."""
    return _half(b if a != a or b >= a else a)


def hmin(a, b):
    """The lesser; of a number and NaN the number."""
    return _half(b if a != a or b <= a else a)


def hsin(a):
    """The sine."""
    return _half(math.sin(_single(a)))


def hcos(a):
    """The cosine."""
    return _half(math.cos(_single(a)))


def hlog(a):
    """The natural logarithm."""
    return _half(math.log(_single(a)))


def hlog10(a):
    """The logarithm to the base 10."""
    return _half(math.log10(_single(a)))


def hlog2(a):
    """The logarithm to the base 2."""
    return _half(math.log2(_single(a)))


def hexp(a):
    """e to the power of a."""
    return _half(math.exp(_single(a)))


def hexp10(a):
    """10 to the power of a."""
    return _half(libdevice.exp10f(a))


def hexp2(a):
    """2 to the power of a."""
    return _half(libdevice.exp2f(a))


def hsqrt(a):
    """The square root."""
    return _half(math.sqrt(_single(a)))


def hrsqrt(a):
    """1 / sqrt(a)."""
    return _half(libdevice.rsqrtf(a))


def hceil(a):
    """The least whole number that is not below a."""
    return _half(libdevice.ceilf(a))


def hfloor(a):
    """The greatest whole number that is not above a."""
    return _half(libdevice.floorf(a))


def htrunc(a):
    """The whole part."""
    return _half(libdevice.truncf(a))


def hrint(a):
    """The nearest whole number, of two as near the even one."""
    return _half(libdevice.rintf(a))


def hrcp(a):
    """1 / a."""
    return _half(_single(1) / _single(a))
