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
    """a + b.

    Parameters
        a, b: numbers.
    Returns
        A number of float16.
    Example
        >>> from stride import cuda
        >>> cuda.fp16.hadd(1.5, 2.0)
        np.float16(3.5)
    """
    return _half(_single(a) + _single(b))


def hsub(a, b):
    """a - b.

    Parameters
        a, b: numbers.
    Returns
        A number of float16.
    Example
        >>> from stride import cuda
        >>> cuda.fp16.hsub(1.5, 2.0)
        np.float16(-0.5)
    """
    return _half(_single(a) - _single(b))


def hmul(a, b):
    """a * b.

    Parameters
        a, b: numbers.
    Returns
        A number of float16.
    Example
        >>> from stride import cuda
        >>> cuda.fp16.hmul(1.5, 2.0)
        np.float16(3.0)
    """
    return _half(_single(a) * _single(b))


def hdiv(a, b):
    """a / b.

    Parameters
        a, b: numbers.
    Returns
        A number of float16.
    Example
        >>> from stride import cuda
        >>> cuda.fp16.hdiv(1.5, 2.0)
        np.float16(0.75)
    """
    return _half(_single(a) / _single(b))


def hfma(a, b, c):
    """a * b + c, rounded once.

    Parameters
        a, b, c: numbers.
    Returns
        A number of float16.
    Example
        >>> from stride import cuda
        >>> cuda.fp16.hfma(1.5, 2.0, 0.5)
        np.float16(3.5)
    """
    return _half(float(a) * float(b) + float(c))  # exact in float64 but for the last rounding


def hneg(a):
    """-a.

    Parameters
        a: a number.
    Returns
        A number of float16.
    Example
        >>> from stride import cuda
        >>> cuda.fp16.hneg(1.5)
        np.float16(-1.5)
    """
    return _half(-_single(a))


def habs(a):
    """The absolute value.

    Parameters
        a: a number.
    Returns
        A number of float16.
    Example
        >>> from stride import cuda
        >>> cuda.fp16.habs(1.5)
        np.float16(1.5)
    """
    return _half(abs(_single(a)))


def heq(a, b):
    """Whether a == b.

    Parameters
        a, b: numbers.
    Returns
        A bool.
    Example
        >>> from stride import cuda
        >>> cuda.fp16.heq(1.5, 2.0)
        np.False_
    """
    return _single(a) == _single(b)


def hne(a, b):
    """Whether a != b.

    Parameters
        a, b: numbers.
    Returns
        A bool.
    Example
        >>> from stride import cuda
        >>> cuda.fp16.hne(1.5, 2.0)
        np.True_
    """
    return _single(a) != _single(b)


def hge(a, b):
    """Whether a >= b.

    Parameters
        a, b: numbers.
    Returns
        A bool.
    Example
        >>> from stride import cuda
        >>> cuda.fp16.hge(1.5, 2.0)
        np.False_
    """
    return _single(a) >= _single(b)


def hgt(a, b):
    """Whether a > b.

    Parameters
        a, b: numbers.
    Returns
        A bool.
    Example
        >>> from stride import cuda
        >>> cuda.fp16.hgt(1.5, 2.0)
        np.False_
    """
    return _single(a) > _single(b)


def hle(a, b):
    """Whether a <= b.

    Parameters
        a, b: numbers.
    Returns
        A bool.
    Example
        >>> from stride import cuda
        >>> cuda.fp16.hle(1.5, 2.0)
        np.True_
    """
    return _single(a) <= _single(b)


def hlt(a, b):
    """Whether a < b.

    Parameters
        a, b: numbers.
    Returns
        A bool.
    Example
        >>> from stride import cuda
        >>> cuda.fp16.hlt(1.5, 2.0)
        np.True_
    """
    return _single(a) < _single(b)


def hmax(a, b):
    """The greater; of a number and NaN the number.

    Parameters
        a, b: numbers.
    Returns
        A number of float16.
    Example
        >>> from stride import cuda
        >>> cuda.fp16.hmax(1.5, 2.0)
        np.float16(2.0)
    """
    return _half(b if a != a or b >= a else a)


def hmin(a, b):
    """The lesser; of a number and NaN the number.

    Parameters
        a, b: numbers.
    Returns
        A number of float16.
    Example
        >>> from stride import cuda
        >>> cuda.fp16.hmin(1.5, 2.0)
        np.float16(1.5)
    """
    return _half(b if a != a or b <= a else a)


def hsin(a):
    """The sine.

    Parameters
        a: a number.
    Returns
        A number of float16.
    Example
        >>> from stride import cuda
        >>> cuda.fp16.hsin(1.5)
        np.float16(0.9976)
    """
    return _half(math.sin(_single(a)))


def hcos(a):
    """The cosine.

    Parameters
        a: a number.
    Returns
        A number of float16.
    Example
        >>> from stride import cuda
        >>> cuda.fp16.hcos(1.5)
        np.float16(0.07074)
    """
    return _half(math.cos(_single(a)))


def hlog(a):
    """The natural logarithm.

    Parameters
        a: a number.
    Returns
        A number of float16.
    Example
        >>> from stride import cuda
        >>> cuda.fp16.hlog(1.5)
        np.float16(0.4055)
    """
    return _half(math.log(_single(a)))


def hlog10(a):
    """The logarithm to the base 10.

    Parameters
        a: a number.
    Returns
        A number of float16.
    Example
        >>> from stride import cuda
        >>> cuda.fp16.hlog10(1.5)
        np.float16(0.1761)
    """
    return _half(math.log10(_single(a)))


def hlog2(a):
    """The logarithm to the base 2.

    Parameters
        a: a number.
    Returns
        A number of float16.
    Example
        >>> from stride import cuda
        >>> cuda.fp16.hlog2(1.5)
        np.float16(0.585)
    """
    return _half(math.log2(_single(a)))


def hexp(a):
    """e to the power of a.

    Parameters
        a: a number.
    Returns
        A number of float16.
    Example
        >>> from stride import cuda
        >>> cuda.fp16.hexp(1.5)
        np.float16(4.48)
    """
    return _half(math.exp(_single(a)))


def hexp10(a):
    """10 to the power of a.

    Parameters
        a: a number.
    Returns
        A number of float16.
    Example
        >>> from stride import cuda
        >>> @cuda.jit
        ... def kernel(x):
        ...     x[0] = cuda.fp16.hexp10(x[0])
        ...
        >>> x = st.array([1.0], dtype=st.float16)
        >>> kernel[1, 1](x)
        >>> x.tolist()
        [10.0]
    """
    return _half(libdevice.exp10f(a))


def hexp2(a):
    """2 to the power of a.

    Parameters
        a: a number.
    Returns
        A number of float16.
    Example
        >>> from stride import cuda
        >>> @cuda.jit
        ... def kernel(x):
        ...     x[0] = cuda.fp16.hexp2(x[0])
        ...
        >>> x = st.array([1.0], dtype=st.float16)
        >>> kernel[1, 1](x)
        >>> x.tolist()
        [2.0]
    """
    return _half(libdevice.exp2f(a))


def hsqrt(a):
    """The square root.

    Parameters
        a: a number.
    Returns
        A number of float16.
    Example
        >>> from stride import cuda
        >>> cuda.fp16.hsqrt(1.5)
        np.float16(1.225)
    """
    return _half(math.sqrt(_single(a)))


def hrsqrt(a):
    """1 / sqrt(a).

    Parameters
        a: a number.
    Returns
        A number of float16.
    Example
        >>> from stride import cuda
        >>> @cuda.jit
        ... def kernel(x):
        ...     x[0] = cuda.fp16.hrsqrt(x[0])
        ...
        >>> x = st.array([4.0], dtype=st.float16)
        >>> kernel[1, 1](x)
        >>> x.tolist()
        [0.5]
    """
    return _half(libdevice.rsqrtf(a))


def hceil(a):
    """The least whole number that is not below a.

    Parameters
        a: a number.
    Returns
        A number of float16.
    Example
        >>> from stride import cuda
        >>> @cuda.jit
        ... def kernel(x):
        ...     x[0] = cuda.fp16.hceil(x[0])
        ...
        >>> x = st.array([1.5], dtype=st.float16)
        >>> kernel[1, 1](x)
        >>> x.tolist()
        [2.0]
    """
    return _half(libdevice.ceilf(a))


def hfloor(a):
    """The greatest whole number that is not above a.

    Parameters
        a: a number.
    Returns
        A number of float16.
    Example
        >>> from stride import cuda
        >>> @cuda.jit
        ... def kernel(x):
        ...     x[0] = cuda.fp16.hfloor(x[0])
        ...
        >>> x = st.array([1.5], dtype=st.float16)
        >>> kernel[1, 1](x)
        >>> x.tolist()
        [1.0]
    """
    return _half(libdevice.floorf(a))


def htrunc(a):
    """The whole part.

    Parameters
        a: a number.
    Returns
        A number of float16.
    Example
        >>> from stride import cuda
        >>> @cuda.jit
        ... def kernel(x):
        ...     x[0] = cuda.fp16.htrunc(x[0])
        ...
        >>> x = st.array([-1.5], dtype=st.float16)
        >>> kernel[1, 1](x)
        >>> x.tolist()
        [-1.0]
    """
    return _half(libdevice.truncf(a))


def hrint(a):
    """The nearest whole number, of two as near the even one.

    Parameters
        a: a number.
    Returns
        A number of float16.
    Example
        >>> from stride import cuda
        >>> @cuda.jit
        ... def kernel(x):
        ...     x[0] = cuda.fp16.hrint(x[0])
        ...
        >>> x = st.array([2.5], dtype=st.float16)
        >>> kernel[1, 1](x)
        >>> x.tolist()
        [2.0]
    """
    return _half(libdevice.rintf(a))


def hrcp(a):
    """1 / a.

    Parameters
        a: a number.
    Returns
        A number of float16.
    Example
        >>> from stride import cuda
        >>> cuda.fp16.hrcp(1.5)
        np.float16(0.6665)
    """
    return _half(_single(1) / _single(a))
