"""NumPy's `emath`: roots, logarithms, powers and inverse functions that give complex numbers outside their real domain.

Whether a number is outside is read, so each call waits for its argument."""

from typing import Any, Callable

from stride import _arguments, _dtypes, _elementwise, _reductions
from stride._array import Array

__all__ = ["arccos", "arcsin", "arctanh", "log", "log10", "log2", "logn", "power", "sqrt"]


def _outside(x: Array, condition: Callable[[Array], Any]) -> bool:
    return x.dtype.kind != "c" and bool(_reductions.any(condition(x)))


def _complex(x: Array) -> Array:
    """NumPy's choice: the small one for the types that have at most 16 bits, and for float32."""
    small = x.dtype == _dtypes.float32 or x.dtype.kind in "iu" and x.dtype.itemsize <= 2
    return x.astype(_dtypes.complex64 if small else _dtypes.complex128)


def _negative_as_complex(x: Any) -> Array:
    (x,) = _arguments.arrays(x)
    return _complex(x) if _outside(x, lambda x: x < 0) else x


def _far_as_complex(x: Any) -> Array:
    (x,) = _arguments.arrays(x)
    return _complex(x) if _outside(x, lambda x: abs(x) > 1) else x


def sqrt(x: Any) -> Array:
    """The square root, imaginary for negative numbers.

    Parameters
        x: an array or a number, which is read.
    Returns
        An array of complex numbers where an element is negative, else a real one.
    Example
        >>> st.emath.sqrt([-4.0, 0.0]).tolist()
        [2j, 0j]
    """
    return _elementwise.sqrt(_negative_as_complex(x))


def log(x: Any) -> Array:
    """The natural logarithm, complex for negative numbers.

    Parameters
        x: an array or a number, which is read.
    Returns
        An array of complex numbers where an element is negative, else a real one.
    Example
        >>> round(float(st.emath.log(-1.0).imag), 4)
        3.1416
    """
    return _elementwise.log(_negative_as_complex(x))


def log10(x: Any) -> Array:
    """The logarithm with base 10, complex for negative numbers.

    Parameters
        x: an array or a number, which is read.
    Returns
        An array of complex numbers where an element is negative, else a real one.
    Example
        >>> st.emath.log10(100.0).item()
        2.0
    """
    return _elementwise.log10(_negative_as_complex(x))


def log2(x: Any) -> Array:
    """The logarithm with base 2, complex for negative numbers.

    Parameters
        x: an array or a number, which is read.
    Returns
        An array of complex numbers where an element is negative, else a real one.
    Example
        >>> st.emath.log2(8.0).item()
        3.0
    """
    return _elementwise.log2(_negative_as_complex(x))


def logn(n: Any, x: Any) -> Array:
    """The logarithm with base `n`, complex for negative numbers.

    Parameters
        n: the base, an array or a number, which is read.
        x: an array or a number, which is read.
    Returns
        An array of complex numbers where an element of `x` or `n` is negative, else a real one.
    Example
        >>> st.emath.logn(2, [4.0, 8.0]).tolist()
        [2.0, 3.0]
    """
    return _elementwise.log(_negative_as_complex(x)) / _elementwise.log(_negative_as_complex(n))


def power(x: Any, p: Any) -> Array:
    """`x` to the power `p`, complex where `x` is negative; a negative integer power gives a fraction.

    Parameters
        x: an array or a number, which is read.
        p: an array or a number, which is read.
    Returns
        An array of complex numbers where an element of `x` is negative, else a real one.
    Example
        >>> st.emath.power([2, 4], -2).tolist()
        [0.25, 0.0625]
    """
    x = _negative_as_complex(x)
    (p,) = _arguments.arrays(p)
    if _outside(p, lambda p: p < 0):
        p = p * 1.0
    return _elementwise.pow(x, p)


def arccos(x: Any) -> Array:
    """The inverse cosine, complex where the absolute value is above 1.

    Parameters
        x: an array or a number, which is read.
    Returns
        An array of complex numbers where an element is outside [-1, 1], else a real one.
    Example
        >>> st.emath.arccos(1.0).item()
        0.0
    """
    return _elementwise.acos(_far_as_complex(x))


def arcsin(x: Any) -> Array:
    """The inverse sine, complex where the absolute value is above 1.

    Parameters
        x: an array or a number, which is read.
    Returns
        An array of complex numbers where an element is outside [-1, 1], else a real one.
    Example
        >>> st.emath.arcsin(0.0).item()
        0.0
    """
    return _elementwise.asin(_far_as_complex(x))


def arctanh(x: Any) -> Array:
    """The inverse hyperbolic tangent, complex where the absolute value is above 1.

    Parameters
        x: an array or a number, which is read.
    Returns
        An array of complex numbers where an element is outside [-1, 1], else a real one.
    Example
        >>> st.emath.arctanh(0.0).item()
        0.0
    """
    return _elementwise.atanh(_far_as_complex(x))
