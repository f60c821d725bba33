"""Histograms and their bins, as NumPy computes them."""

import math
import operator
from typing import Any, Optional, Sequence, Tuple

import numpy as np

from stride import (
    _arguments, _casts, _deviations, _dtypes, _groups, _manipulation, _ordering, _quantiles, _reductions, _routines,
)
from stride._array import Array, array_of
from stride._elementwise import where
from stride._manipulation import reshape

__all__ = ["digitize", "histogram", "histogram2d", "histogram_bin_edges", "histogramdd"]


def digitize(x: Any, bins: Any, right: bool = False) -> Array:
    """The number of the bin that each element is in; 0 is before the first edge.

    Parameters
        x: an array of real numbers.
        bins: the edges, which rise or fall; whether they do is read where the service alone has them.
        right: whether a bin has its right edge instead of its left.
    Returns
        An array of int64 of `x`'s shape.
    Raises
        ValueError for edges that neither rise nor fall; TypeError for complex numbers.
    Example
        >>> st.digitize(st.array([0.2, 6.4]), [0.0, 1.0, 2.5, 10.0]).tolist()
        [1, 3]
    """
    values, edges = _arguments.arrays(x, bins)
    if "c" in (values.dtype.kind, edges.dtype.kind):
        raise TypeError("x and bins may not be complex")
    if edges.ndim != 1:
        raise ValueError(f"bins have one axis, not {edges.ndim}")
    rises = _direction(edges._read())
    side = "left" if right else "right"
    if rises:
        return _ordering.searchsorted(edges, values, side)
    turned = _casts.copy(edges[::-1])
    return edges.size - _ordering.searchsorted(turned, values, side)


def _outer_edges(limits: Any, count: int) -> np.ndarray:
    low, high = (one._read()[()] if isinstance(one, Array) else one for one in limits)
    if low > high:
        raise ValueError("max must be larger than min in range parameter.")
    if not (np.isfinite(low) and np.isfinite(high)):
        raise ValueError(f"supplied range of [{low}, {high}] is not finite")
    if low == high:
        low, high = low - 0.5, high + 0.5
    return np.linspace(low, high, count + 1)


def _direction(edges: np.ndarray) -> bool:
    """Whether edges rise, as NumPy finds out: the first that differs from the first one decides, and NaN is less than
    nothing and greater than nothing."""
    different = np.flatnonzero(edges[1:] != edges[:-1])
    if not different.size:
        return True
    rest = edges[different[0] :]
    if rest[0] < rest[1]:
        wrong = (rest[:-1] > rest[1:]).any()
        rises = True
    else:
        wrong = (rest[:-1] < rest[1:]).any()
        rises = False
    if wrong:
        raise ValueError("bins must be monotonically increasing or decreasing")
    return rises


_ESTIMATORS = ("auto", "doane", "fd", "rice", "scott", "sqrt", "stone", "sturges")


def _number_of_bins(name: str, x: Array, weights: Any, range: Any) -> int:  # noqa: A002
    """By NumPy's rules, from statistics that come back: one round trip or a few."""
    if name not in _ESTIMATORS:
        raise ValueError(f"{name!r} is not a valid estimator for `bins`")
    if weights is not None:
        raise TypeError("Automated estimation of the number of bins is not supported for weighted data")
    x = _manipulation.ravel(x)
    if range is not None:
        low, high = range
        x = _routines.take_masked(x, (x >= low) & (x <= high), 0)
    if not x.size:
        return 1
    least, greatest = float(_reductions.min(x)), float(_reductions.max(x))
    width = _bin_width(name, x.astype(_dtypes.float64) if x.dtype.kind in "biu" else x, greatest - least, range)
    if not width:
        return 1
    width = max(width, 1) if x.dtype.kind in "iu" else width
    low, high = (least, greatest) if range is None else range
    if low == high:
        low, high = low - 0.5, high + 0.5
    return int(np.ceil((high - low) / width))


def _bin_width(name: str, x: Array, extent: float, range: Any) -> float:  # noqa: A002
    size = x.size
    if name == "sqrt":
        return extent / np.sqrt(size)
    if name == "sturges":
        return extent / (np.log2(size) + 1.0)
    if name == "rice":
        return extent / (2.0 * size ** (1.0 / 3))
    if name == "scott":
        return (24.0 * np.pi**0.5 / size) ** (1.0 / 3.0) * float(_deviations.std(x))
    if name == "doane":
        if size <= 2:
            return 0.0
        deviation = float(_deviations.std(x))
        if not deviation > 0.0:
            return 0.0
        skew_error = np.sqrt(6.0 * (size - 2) / ((size + 1.0) * (size + 3)))
        skew = float(_deviations.mean(((x - _deviations.mean(x)) / deviation) ** 3))
        return extent / (1.0 + np.log2(size) + np.log2(1.0 + abs(skew) / skew_error))
    if name == "stone":
        return _stone_width(x, extent, range)
    upper, lower = _quantiles.percentile(x, [75, 25])._read()
    width = 2.0 * float(upper - lower) / size ** (1.0 / 3.0)
    if name == "fd":
        return width
    width = max(width, extent / np.sqrt(size) / 2)  # no more than twice as many bins as sqrt has
    return min(width, extent / (np.log2(size) + 1.0))


def _stone_width(x: Array, extent: float, limits: Any) -> float:
    """The number of bins with the least estimated loss, each tried."""
    size = x.size
    if size <= 1 or extent == 0:
        return 0.0
    most = max(100, int(np.sqrt(size)))
    losses = []
    for count in range(1, most + 1):
        shares = _groups.histogram(x, count, limits)[0]._read() / size
        losses.append((2 - (size + 1) * shares.dot(shares)) / (extent / count))
    return extent / (int(np.argmin(losses)) + 1)


def histogram_bin_edges(a: Any, bins: Any = 10, range: Any = None, weights: Any = None) -> Array:  # noqa: A002
    """The edges of the bins that `histogram` counts in.

    Parameters
        a: an array of real numbers.
        bins: a number of equal bins, their edges, or the name of a rule that finds a number.
        range: the least and greatest value of equal bins; by default the elements', which are read.
        weights: of the elements; their sums are given instead of counts.
    Returns
        An array of one axis, one element longer than there are bins.
    Raises
        ValueError for edges that fall and ranges that are not finite.
    Example
        >>> st.histogram_bin_edges(st.array([0, 4]), bins=2).tolist()
        [0.0, 2.0, 4.0]
    """
    x = array_of(a)
    if isinstance(bins, str):
        bins = _number_of_bins(bins, x, weights, range)
    if _is_number(bins):
        return array_of(_groups._uniform_edges(x, _whole(bins), range), x.session)
    edges = array_of(bins, x.session)
    if edges.ndim != 1:
        raise ValueError("`bins` must be 1d, when an array")
    known = edges._read()
    if (known[:-1] > known[1:]).any():
        raise ValueError("`bins` must increase monotonically, when an array")
    return edges


def _is_number(bins: Any) -> bool:
    """Bins by their number; what has a length are edges, or bins of several axes."""
    return not isinstance(bins, (Array, np.ndarray)) and not hasattr(bins, "__len__") or getattr(bins, "ndim", 1) == 0


def _whole(bins: Any) -> int:
    try:
        return operator.index(bins)
    except TypeError:
        raise TypeError("`bins` must be an integer, a string, or an array") from None


def histogram(
    a: Any, bins: Any = 10, range: Any = None, density: Optional[bool] = None, weights: Any = None  # noqa: A002
) -> Tuple[Array, Array]:
    """How many elements are in each bin.

    Parameters
        a: an array of real numbers.
        bins: a number of equal bins, their edges, or the name of a rule that finds a number.
        range: the least and greatest value of equal bins; by default the elements', which are read.
        density: whether the counts are divided so that the bins' areas are 1 together.
        weights: of the elements; their sums are given instead of counts.
    Returns
        The counts, an array of int64, and the edges, one more.
    Raises
        ValueError for edges that fall and ranges that are not finite.
    Example
        >>> [one.tolist() for one in st.histogram(st.array([1, 2, 1]), bins=[0, 1, 2, 3])]
        [[0, 2, 1], [0, 1, 2, 3]]
    """
    x = array_of(a)
    if x.dtype.kind == "b":
        x = x.astype(_dtypes.uint8)
    if isinstance(bins, str):
        bins = _number_of_bins(bins, x, weights, range)
    elif _is_number(bins):
        bins = _whole(bins)
    counts, edges = _groups.histogram(x, bins, range, weights)
    if not density:
        return counts, edges
    widths = (edges[1:] - edges[:-1]).astype(_dtypes.float64)
    return counts / widths / _reductions.sum(counts), edges


def histogram2d(
    x: Any, y: Any, bins: Any = 10, range: Any = None, density: Optional[bool] = None, weights: Any = None  # noqa: A002
) -> Tuple[Array, Array, Array]:
    """How many points are in each cell of a grid.

    Parameters
        x, y: the points' coordinates, two arrays of one axis.
        bins: a number for both, edges for both, or two of these.
        range: two pairs of least and greatest values.
        density: whether the counts are divided so that the bins' areas are 1 together.
        weights: of the elements; their sums are given instead of counts.
    Returns
        The counts as a matrix of float64, the edges along x, and those along y.
    Raises
        ValueError for coordinates of different numbers.
    Example
        >>> st.histogram2d([0, 1], [0, 1], bins=2)[0].tolist()
        [[1.0, 0.0], [0.0, 1.0]]
    """
    first, second = _arguments.arrays(x, y)
    if first.size != second.size:
        raise ValueError("x and y must have the same length.")
    try:
        number = len(bins)
    except TypeError:
        number = 1
    if number not in (1, 2):
        edges = array_of(bins)
        bins = [edges, edges]
    counts, edges = histogramdd([first, second], bins, range, density, weights)
    return counts, edges[0], edges[1]


def histogramdd(
    sample: Any,
    bins: Any = 10,
    range: Optional[Sequence] = None,  # noqa: A002, NumPy's name
    density: Optional[bool] = None,
    weights: Any = None,
) -> Tuple[Array, Tuple[Array, ...]]:
    """How many points are in each cell of a grid of any number of axes.

    Parameters
        sample: an array with a point in each row, or a list of their coordinates.
        bins: a number for all axes, or for each axis a number or edges.
        range: for each axis the least and greatest value, or None.
        density: whether the counts are divided so that the bins' areas are 1 together.
        weights: of the elements; their sums are given instead of counts.
    Returns
        The counts as an array of float64, and a tuple of the edges.
    Raises
        ValueError for bins of another number, edges that fall, and ranges that are not finite.
    Example
        >>> st.histogramdd([[0, 1], [0, 1]], bins=1)[0].tolist()
        [[2.0]]
    """
    points = array_of(sample)
    if not isinstance(sample, (Array, np.ndarray)):
        points = _manipulation.matrix_transpose(points if points.ndim > 1 else reshape(points, (1, points.size)))
    elif points.ndim == 1:
        points = reshape(points, (points.size, 1))
    rank = points.shape[1]
    number_each = [bins] * rank if _is_number(bins) else list(bins)
    if len(number_each) != rank:
        raise ValueError("The dimension of bins must be equal to the dimension of the sample x.")
    ranges = [None] * rank if range is None else list(range)
    if len(ranges) != rank:
        raise ValueError("range argument must have one entry per dimension")
    edges, places, inside = [], None, None
    for axis, (each, limits) in enumerate(zip(number_each, ranges)):
        column = points[:, axis]
        if _is_number(each) and each < 1:
            raise ValueError(f"`bins[{axis}]` must be positive, when an integer")
        if _is_number(each) and limits is not None:  # in the type of the limits, whatever the sample's
            edge = array_of(_outer_edges(limits, int(each)), points.session)
        else:
            edge = histogram_bin_edges(column, each, limits)
        edges.append(edge)
        place = _ordering.searchsorted(edge, column, "right") - 1
        place = where(column == edge[-1], edge.size - 2, place)
        fits = (place >= 0) & (place < edge.size - 1)
        places = place if places is None else places * (edge.size - 1) + place
        inside = fits if inside is None else inside & fits
    shape = tuple(one.size - 1 for one in edges)
    cells = math.prod(shape)
    if places is None or inside is None:
        raise ValueError("a histogram needs at least one axis")
    groups = where(inside, places, cells)
    if weights is None:
        counted = _groups.group_reduce("add", 1, groups, cells + 1)
    else:
        counted = _groups.group_reduce(
            "add", _manipulation.ravel(array_of(weights, points.session)).astype(_dtypes.float64), groups, cells + 1
        )
    result = reshape(counted[:cells].astype(_dtypes.float64), shape)
    if density:
        total = _reductions.sum(result)
        for axis, edge in enumerate(edges):
            width = (edge[1:] - edge[:-1]).astype(_dtypes.float64)
            result = result / reshape(width, tuple(width.size if i == axis else 1 for i in np.arange(rank)))
        result = result / total
    return result, tuple(edges)
