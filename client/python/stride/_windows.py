"""Windows of signal processing: weights of an interval."""

import math
from typing import Any, Tuple

from stride import _creation, _elementwise
from stride._array import Array
from stride._creation import arange, zeros

__all__ = ["bartlett", "blackman", "hamming", "hanning", "kaiser"]


def _number_of_points(M: Any) -> float:  # noqa: N803
    """As NumPy, in double precision, whatever the number's type is."""
    return float(M)


def _cosines(M: Any, weights: Tuple[float, ...]) -> Array:  # noqa: N803
    count = _number_of_points(M)
    if count < 1:
        return zeros((0,))
    if count == 1:
        return _creation.ones((1,))
    n = arange(1 - count, count, 2)
    result = weights[0] + weights[1] * _elementwise.cos(math.pi * n / (count - 1))
    return result + weights[2] * _elementwise.cos(2.0 * math.pi * n / (count - 1)) if len(weights) > 2 else result


def hanning(M: int) -> Array:  # noqa: N803
    """The Hann window of M points: a raised cosine.

    Parameters
        M: the number of points; nothing is returned for less than 1.
    Returns
        An array of shape (M,) of float64.
    Raises
        TypeError for an `M` that is no number.
    Example
        >>> st.hanning(3).tolist()
        [0.0, 1.0, 0.0]
    """
    return _cosines(M, (0.5, 0.5))


def hamming(M: int) -> Array:  # noqa: N803
    """The Hamming window of M points.

    Parameters
        M: the number of points; nothing is returned for less than 1.
    Returns
        An array of shape (M,) of float64.
    Raises
        TypeError for an `M` that is no number.
    Example
        >>> st.hamming(3).tolist()[1]
        1.0
    """
    return _cosines(M, (0.54, 0.46))


def blackman(M: int) -> Array:  # noqa: N803
    """The Blackman window of M points.

    Parameters
        M: the number of points; nothing is returned for less than 1.
    Returns
        An array of shape (M,) of float64.
    Raises
        TypeError for an `M` that is no number.
    Example
        >>> round(float(st.blackman(3)[1]), 12)
        1.0
    """
    return _cosines(M, (0.42, 0.5, 0.08))


def bartlett(M: int) -> Array:  # noqa: N803
    """The Bartlett window of M points: a triangle that ends at zero.

    Parameters
        M: the number of points; nothing is returned for less than 1.
    Returns
        An array of shape (M,) of float64.
    Raises
        TypeError for an `M` that is no number.
    Example
        >>> st.bartlett(3).tolist()
        [0.0, 1.0, 0.0]
    """
    count = _number_of_points(M)
    if count < 1:
        return zeros((0,))
    if count == 1:
        return _creation.ones((1,))
    n = arange(1 - count, count, 2)
    return _elementwise.where(n <= 0, 1 + n / (count - 1), 1 - n / (count - 1))


def kaiser(M: int, beta: float) -> Array:  # noqa: N803
    """The Kaiser window of M points, by the modified Bessel function `i0`.

    Parameters
        M: the number of points; nothing is returned for less than 1.
        beta: the shape: 0 is a rectangle, and the window becomes narrower with it.
    Returns
        An array of shape (M,) of float64.
    Raises
        TypeError for an `M` that is no number.
    Example
        >>> round(float(st.kaiser(3, 14.0)[1]), 12)
        1.0
    """
    from stride._comparisons import i0

    count = _number_of_points(M)
    if count == 1:
        return _creation.ones((1,))
    n = arange(0.0, count)
    alpha = (count - 1) / 2.0
    inside = _elementwise.maximum(1 - ((n - alpha) / alpha) ** 2.0, 0.0)
    return i0(beta * _elementwise.sqrt(inside)) / i0(float(beta))
