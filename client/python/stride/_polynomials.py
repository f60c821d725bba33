"""NumPy's functions of polynomials, whose coefficients are arrays from the highest power to the lowest. Coefficients of
the class poly1d are on the host."""

from typing import Any, Optional

import numpy as np

from stride import (
    _arguments, _casts, _creation, _dtypes, _elementwise, _inference, _manipulation, _reductions, _triangles,
)
from stride._array import Array, array_of
from stride._assembly import concat
from stride._calculus import convolve
from stride._manipulation import reshape

__all__ = [
    "poly", "poly1d", "polyadd", "polyder", "polydiv", "polyfit", "polyint", "polymul", "polysub", "polyval",
    "roots",
]


def _coefficients(*given: Any):
    return tuple(reshape(one, (1,)) if not one.ndim else one for one in _arguments.arrays(*given))


def _with_axis(p: Any) -> Array:
    array = array_of(p)
    if not array.ndim:
        raise TypeError("a polynomial's coefficients have an axis")
    return array


def poly(seq_of_zeros: Any) -> Array:
    """The polynomial with these zeros, or the characteristic one of a square matrix.

    Parameters
        seq_of_zeros: an array of one axis, or a square matrix.
    Returns
        The coefficients, the first of which is 1.
    Raises
        ValueError for another shape.
    Example
        >>> st.poly([2.0, 3.0]).tolist()
        [1.0, -5.0, 6.0]
    """
    (zeros,) = _coefficients(seq_of_zeros)
    if zeros.ndim == 2 and zeros.shape[0] == zeros.shape[1] and zeros.shape[0]:
        from stride import linalg

        zeros = linalg.eigvals(zeros)
    elif zeros.ndim != 1:
        raise ValueError("input must be 1d or non-empty square 2d array.")
    if not zeros.size:
        return _creation.ones(())
    kind = _dtypes.float64 if zeros.dtype.kind in "biu" or zeros.dtype == _dtypes.float16 else zeros.dtype
    zeros = zeros.astype(kind, copy=False)
    result = _creation.ones((1,), kind)
    one = _creation.ones((1,), kind)
    for i in range(zeros.size):
        result = convolve(result, concat([one, -zeros[i:i + 1]]))
    if kind.kind == "c" and bool(_reductions.all(_sorted_pairs(zeros) == _sorted_pairs(_elementwise.conjugate(zeros)))):
        result = _casts.copy(result.real)
    return result


def _sorted_pairs(zeros: Array) -> Array:
    from stride import _ordering

    return _ordering.sort(zeros)


def roots(p: Any) -> Array:
    """The zeros of a polynomial: the eigenvalues of its companion matrix. Where coefficients are zero is read.

    Parameters
        p: the coefficients, along one axis.
    Returns
        An array of complex128, or of float64 where all zeros are real.
    Raises
        ValueError for more axes.
    Example
        >>> sorted(st.roots([1.0, -3.0, 2.0]).real.tolist()) == [1.0, 2.0]
        True
    """
    (array,) = _coefficients(p)
    if array.ndim != 1:
        raise ValueError("Input must be a rank-1 array.")
    places = np.flatnonzero(array._read())
    if not len(places):
        return _creation.zeros((0,))
    num_zeros = array.size - int(places[-1]) - 1
    array = array[int(places[0]):int(places[-1]) + 1]
    array = array.astype(_dtypes.float64) if array.dtype.kind in "biu" else array
    size = array.size
    if size < 2:
        found = _creation.zeros((0,), array.dtype)
    else:
        from stride._decompositions import real_eigvals

        first = reshape(-array[1:] / array[0], (1, size - 1))
        below = _triangles.eye(size - 2, size - 1, dtype=array.dtype)
        found = real_eigvals(concat([first, below], 0))
    return concat([found, _creation.zeros((num_zeros,), found.dtype)])


def polyval(p: Any, x: Any) -> Array:
    """The values of a polynomial, by Horner's rule.

    Parameters
        p: the coefficients.
        x: an array or a number.
    Returns
        An array of `x`'s shape.
    Example
        >>> int(st.polyval([3, 0, 1], 5))
        76
    """
    array = _with_axis(p)
    place = array_of(x, array.session)
    result: Any = _creation.zeros_like(place)
    for i in range(array.shape[0]):
        result = result * place + array[i]
    return result


def _longer(a1: Any, a2: Any):
    first, second = _coefficients(a1, a2)
    size = max(first.size, second.size)
    kind = _inference.promote(first.dtype, second.dtype)

    def wide(one: Array) -> Array:
        missing = size - one.size
        return concat([_creation.zeros((missing,), one.dtype), one]) if missing else one

    return wide(first).astype(kind, copy=False), wide(second).astype(kind, copy=False)


def polyadd(a1: Any, a2: Any) -> Array:
    """The sum of two polynomials.

    Parameters
        a1: coefficients, the highest power first.
        a2: coefficients, the highest power first.
    Returns
        An array of one axis.
    Example
        >>> st.polyadd([1, 2], [9, 5, 4]).tolist()
        [9, 6, 6]
    """
    first, second = _longer(a1, a2)
    return first + second


def polysub(a1: Any, a2: Any) -> Array:
    """The difference of two polynomials.

    Parameters
        a1: coefficients, the highest power first.
        a2: coefficients, the highest power first.
    Returns
        An array of one axis.
    Example
        >>> st.polysub([2, 10], [1]).tolist()
        [2, 9]
    """
    first, second = _longer(a1, a2)
    return first - second


def polymul(a1: Any, a2: Any) -> Array:
    """The product of two polynomials.

    Parameters
        a1: coefficients, the highest power first.
        a2: coefficients, the highest power first.
    Returns
        An array of one axis.
    Example
        >>> st.polymul([1, 2], [1, 3]).tolist()
        [1, 5, 6]
    """
    first, second = (_without_leading_zeros(one) for one in _coefficients(a1, a2))
    return convolve(first, second)


def _without_leading_zeros(p: Array) -> Array:
    """As NumPy's polymul drops them; the host is asked, which is one round trip for arrays that it does not have."""
    if not p.size:
        return _creation.zeros(1, p.dtype)  # the polynomial 0
    places = np.flatnonzero(p._read())
    return p[int(places[0]):] if len(places) else p[-1:]


def polydiv(u: Any, v: Any):
    """The quotient and the remainder of two polynomials; leading zeros of the remainder are read.

    Parameters
        u, v: the coefficients.
    Returns
        A tuple of two arrays.
    Raises
        ValueError for a divisor without coefficients.
    Example
        >>> [one.tolist() for one in st.polydiv([3.0, 5.0, 2.0], [2.0, 1.0])]
        [[1.5, 1.75], [0.25]]
    """
    first, second = _coefficients(u, v)
    kind = _inference.promote(first.dtype, second.dtype, float)
    first, second = first.astype(kind), second.astype(kind)
    m, n = first.size - 1, second.size - 1
    scale = 1.0 / second[0]
    quotient = []
    rest = first
    for k in range(m - n + 1):
        factor = scale * rest[k]
        quotient.append(reshape(factor, (1,)))
        middle = rest[k:k + n + 1] - factor * second
        rest = concat([rest[:k], middle, rest[k + n + 1:]])
    result = concat(quotient) if quotient else _creation.zeros((max(m - n + 1, 1),), kind)
    # As NumPy, which drops leading coefficients near zero.
    known = rest._read()
    begin = 0
    while begin < len(known) - 1 and np.allclose(known[begin], 0, rtol=1e-14):
        begin += 1
    return result, rest[begin:]


def polyder(p: Any, m: int = 1) -> Array:
    """The m-th derivative of a polynomial.

    Parameters
        p: coefficients, the highest power first.
        m: how often the polynomial is differentiated.
    Returns
        An array of one axis, shorter by `m`.
    Raises
        ValueError for a negative m.
    Example
        >>> st.polyder([1, 1, 1]).tolist()
        [2, 1]
    """
    m = int(m)
    if m < 0:
        raise ValueError("Order of derivative must be positive (see polyint)")
    array = _with_axis(p)
    for _ in range(m):
        array = array[:-1] * _creation.arange(array.shape[0] - 1, 0, -1)
    return array


def polyint(p: Any, m: int = 1, k: Any = None) -> Array:
    """The m-th integral of a polynomial.

    Parameters
        p: the coefficients.
        m: how often.
        k: the constants, by default 0; the first integral's first.
    Returns
        The coefficients.
    Raises
        ValueError for a negative m and another number of constants.
    Example
        >>> st.polyint([2.0, 1.0]).tolist()
        [1.0, 1.0, 0.0]
    """
    m = int(m)
    if m < 0:
        raise ValueError("Order of integral must be positive (see polyder)")
    array = _with_axis(p)
    constants = _coefficients(0.0 if k is None else k)[0]
    if constants.size == 1 and m > 1:
        constants = _manipulation.broadcast_to(constants, (m,))
    if constants.size < m:
        raise ValueError("k must be a scalar or a rank-1 array of length 1 or >m.")
    for i in range(m):
        divided = array / _creation.arange(array.size, 0, -1)
        array = concat([divided, constants[i:i + 1]])
    return array


def polyfit(
    x: Any, y: Any, deg: int, rcond: Optional[float] = None, full: bool = False, w: Any = None, cov: Any = False
):
    """The polynomial of a degree that fits points best, by least squares.

    Parameters
        x: the points' places, along one axis.
        y: their values, along one axis or in the columns of a matrix.
        deg: the degree.
        rcond: singular values below that share of the greatest count as 0.
        full: whether residuals, rank, singular values and rcond are returned as well.
        w: the points' weights.
        cov: whether the covariance is returned as well; "unscaled" for without the residuals' scale.
    Returns
        The coefficients, or with `full` or `cov` a tuple.
    Raises
        ValueError for a negative degree; TypeError for shapes that do not fit.
    Example
        >>> st.polyfit([0.0, 1.0, 2.0], [1.0, 3.0, 5.0], 1).round(6).tolist()
        [2.0, 1.0]
    """
    from stride import _grids, linalg

    order = int(deg) + 1
    if deg < 0:
        raise ValueError("expected deg >= 0")
    places, values = _arguments.arrays(x, y)
    places, values = places + 0.0, values + 0.0
    if places.ndim != 1:
        raise TypeError("expected 1D vector for x")
    if not places.size:
        raise TypeError("expected non-empty vector for x")
    if values.ndim < 1 or values.ndim > 2:
        raise TypeError("expected 1D or 2D array for y")
    if places.shape[0] != values.shape[0]:
        raise TypeError("expected x and y to have same length")
    rcond = len(places) * np.finfo(places.dtype).eps if rcond is None else rcond
    left, right = _grids.vander(places, order), values
    if w is not None:
        weights = array_of(w, places.session) + 0.0
        if weights.ndim != 1:
            raise TypeError("expected a 1-d array for weights")
        if weights.shape[0] != values.shape[0]:
            raise TypeError("expected w and y to have the same length")
        column = reshape(weights, (weights.size, 1))
        left = left * column
        right = right * (column if right.ndim == 2 else weights)
    scale = _elementwise.sqrt(_reductions.sum(left * left, axis=0))
    left = left / scale
    solution, residuals, rank, singular = linalg.lstsq(left, right, rcond)
    solution = (solution.T / scale).T if solution.ndim > 1 else solution / scale
    if full:
        return solution, residuals, rank, singular, rcond
    if not cov:
        return solution
    base = linalg.inv(left.T @ left) / (reshape(scale, (scale.size, 1)) * scale)
    if cov == "unscaled":
        factor: Any = 1
    else:
        if len(places) <= order:
            raise ValueError("the number of data points must exceed order to scale the covariance matrix")
        factor = residuals / (len(places) - order)
    if values.ndim == 1:
        return solution, base * factor
    return solution, reshape(base, (*base.shape, 1)) * factor


class poly1d(np.poly1d):  # noqa: N801
    """A polynomial as a value: NumPy's class, whose coefficients are on the host. Its values at an array of the service
    are computed by the service.

    Parameters
        c_or_r: the coefficients from the highest power on, or with `r` the zeros; an array is read.
        r: whether `c_or_r` are zeros.
        variable: the name of the variable in its text; None for `x`.
    Returns
        A numpy.poly1d.
    Example
        >>> p = st.poly1d([1.0, 2.0])
        >>> p(st.asarray([1.0, 2.0])).tolist()
        [3.0, 4.0]
    """

    def __init__(self, c_or_r: Any, r: bool = False, variable: Optional[str] = None) -> None:
        given = c_or_r if isinstance(c_or_r, np.poly1d) else np.asarray(c_or_r)
        super().__init__(given, r, variable)
