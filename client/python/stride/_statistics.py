"""Quantiles, averages, covariance and histograms, as NumPy computes them."""

import functools
import math
import operator
from typing import Any, List, NamedTuple, Optional, Sequence, Tuple, Union

import numpy as np

from stride import _arguments, _creation, _dtypes, _elementwise, _indexing, _inference, _manipulation, _reductions
from stride import _origin, _routines
from stride._array import Array, array_of, host_array
from stride._elementwise import isnan, where
from stride._manipulation import reshape

__all__ = [
    "average",
    "corrcoef",
    "cov",
    "digitize",
    "histogram",
    "histogram2d",
    "histogram_bin_edges",
    "histogramdd",
    "median",
    "nanmedian",
    "nanpercentile",
    "nanquantile",
    "percentile",
    "quantile",
]


# --- quantiles ---

# Types whose mean is the sum in that type, divided.
_SUMMED_AS_THEY_ARE = (_dtypes.float32, _dtypes.float64)


class _Slices:
    """The elements of reduced axes along the last axis, and the shape that the result has with them."""

    def __init__(self, a: Any, axis: Any):
        self.array = array_of(a)
        self.axes = _inference.normal_axes(axis, self.array.ndim)
        kept = [i for i in range(self.array.ndim) if i not in self.axes]
        self.shape = tuple(self.array.shape[i] for i in kept)
        self.kept_shape = tuple(1 if i in self.axes else n for i, n in enumerate(self.array.shape))
        self.count = math.prod(self.array.shape[i] for i in self.axes)
        self._order = (*kept, *self.axes)

    @property
    def lines(self) -> Array:
        return self.collapse(self.array)

    def collapse(self, array: Array) -> Array:
        if self._order != tuple(range(array.ndim)):
            array = _manipulation.permute_dims(array, self._order)
        return reshape(array, (*self.shape, self.count))

    def ranked(self, ranks: Array) -> Array:
        """Along a last axis the elements that a sort would put at these places, each slice's own along a last axis."""
        return _routines.ranked(self.lines, ranks, len(self.shape))

    def ranked_at(self, ranks: Tuple[int, ...]) -> List[Array]:
        """For each of these places the elements that a sort would put there."""
        found = self.first_ranked_at(ranks)
        return [_indexing.view(found, i, Ellipsis) for i in range(len(ranks))]

    def first_ranked_at(self, ranks: Tuple[int, ...]) -> Array:
        """The same along a first axis."""
        array, axis = (self.array, self.axes[0]) if len(self.axes) == 1 else (self.lines, len(self.shape))
        found = _routines.ranked_at(array, ranks, axis)
        return _manipulation.moveaxis(found, axis, 0) if axis else found

    def result(self, reduced: Array, keepdims: bool, before: tuple = ()) -> Array:
        return reshape(reduced, (*before, *(self.kept_shape if keepdims else self.shape)))


def median(
    a: Any, axis: Any = None, out: Any = None, overwrite_input: bool = False, keepdims: bool = False
) -> Array:
    """The median along axes: the middle element, or the mean of the two middle ones.

    Parameters
        a: an array of numbers.
        axis: None for all, an integer, or a tuple of them.
        out: array of the result's shape that takes it.
        overwrite_input: changes nothing.
        keepdims: whether the axes stay, with one element each.
    Returns
        An array of float64 for integers, else of `a`'s type; NaN where there is one, or no element.
    Raises
        AxisError for an axis that `a` lacks.
    Example
        >>> float(st.median(st.array([3, 1, 4, 2])))
        2.5
    """
    slices = _Slices(a, axis)
    count = slices.count
    if not count:
        return _arguments.give(slices.result(_reductions.mean(slices.lines, axis=-1), keepdims), out, "unsafe")
    has_nan = slices.array.dtype.kind in "fc"
    middle = range((count - 1) // 2, count // 2 + 1)
    # NaN are last in order.
    ranks = (*middle, *((count - 1,) if has_nan else ()))
    last = None
    if slices.array.dtype in _SUMMED_AS_THEY_ARE:
        *found, last = slices.ranked_at(ranks)
        result = found[0] if count % 2 else (found[0] + found[1]) / 2
    else:
        found_first = slices.first_ranked_at(ranks)
        result = _reductions.mean(found_first[:len(middle)], axis=0)
        last = _indexing.view(found_first, -1, Ellipsis) if has_nan else None
    if last is not None:
        result = where(isnan(last), last, result)
    return _arguments.give(slices.result(result, keepdims), out, "unsafe")


def _warn_of_nan_slices(array: Array, axes: Sequence[int]) -> None:
    from stride import _float_errors

    _float_errors.of_nan_slices(array, axes, "All-NaN slice encountered", empty="Mean of empty slice")


def nanmedian(
    a: Any, axis: Any = None, out: Any = None, overwrite_input: bool = False, keepdims: bool = False
) -> Array:
    """The median along axes, ignoring NaN; NaN for an all-NaN slice.

    Parameters
        a: an array of numbers.
        axis: None for all, an integer, or a tuple of them.
        out: array of the result's shape that takes it.
        overwrite_input: changes nothing.
        keepdims: whether the axes stay, with one element each.
    Returns
        An array of float64 for integers, else of `a`'s type; NaN where there is one, or no element.
    Raises
        AxisError for an axis that `a` lacks.
    Example
        >>> float(st.nanmedian(st.array([3.0, float("nan"), 1.0])))
        2.0
    """
    slices = _Slices(a, axis)
    if slices.array.dtype.kind not in "fc" or not slices.count:
        return median(a, axis, out, overwrite_input, keepdims)
    _warn_of_nan_slices(slices.array, slices.axes if slices.array.ndim else ())
    count = _reductions.sum(~isnan(slices.lines), axis=-1, keepdims=True)
    middle = (_elementwise.maximum(count - 1, 0) // 2, _elementwise.minimum(count // 2, slices.count - 1))
    result = _reductions.mean(slices.ranked(_manipulation.concat(middle, -1)), axis=-1)
    return _arguments.give(slices.result(result, keepdims), out, "unsafe")


def _floor_or_before(index: Any, takes_before: Any, xp: Any) -> Any:
    """A discrete place from a place between elements: the one before where it says so, else the one after."""
    before = xp.floor(index)
    return xp.maximum(xp.where(takes_before(index - before, before), before, before + 1), 0)


def _hyndman_fan(alpha: float, beta: float) -> Any:
    return lambda n, q, xp: n * q + (alpha + q * (1 - alpha - beta)) - 1


# By method: the place between elements as a function of their number and the quantile.
_PLACES = {
    "inverted_cdf": lambda n, q, xp: _floor_or_before(n * q - 1, lambda g, before: g == 0, xp),
    "averaged_inverted_cdf": lambda n, q, xp: n * q - 1,
    "closest_observation": lambda n, q, xp: _floor_or_before(
        n * q - 1 - 0.5, lambda g, before: (g == 0) & (before % 2 == 1), xp
    ),
    "interpolated_inverted_cdf": _hyndman_fan(0, 1),
    "hazen": _hyndman_fan(0.5, 0.5),
    "weibull": _hyndman_fan(0, 0),
    "linear": lambda n, q, xp: (n - 1) * q,
    "median_unbiased": _hyndman_fan(1 / 3.0, 1 / 3.0),
    "normal_unbiased": _hyndman_fan(3 / 8.0, 3 / 8.0),
    "lower": lambda n, q, xp: xp.floor((n - 1) * q),
    "higher": lambda n, q, xp: xp.ceil((n - 1) * q),
    "midpoint": lambda n, q, xp: 0.5 * (xp.floor((n - 1) * q) + xp.ceil((n - 1) * q)),
    "nearest": lambda n, q, xp: xp.rint((n - 1) * q),
}
_DISCRETE = ("inverted_cdf", "closest_observation", "lower", "higher", "nearest")


def _shares(place: Any, before: Any, method: str, xp: Any) -> Any:
    """How much of the element after counts."""
    share = place - before
    if method == "averaged_inverted_cdf":
        return xp.where(share == 0, 0.5, 1.0)
    if method == "midpoint":
        return xp.where(place % 1 == 0, 0.0, 0.5)
    return share


def _quantiles(q: Any, scale: float) -> Tuple[np.ndarray, bool]:
    """The quantiles on the host, from 0 to 1, and whether q is one of Python's numbers, which are weak."""
    if type(q) is float or type(q) is int:
        return _quantiles_of_number(q, scale), True
    return _checked_quantiles(host_array(q), scale), False


@functools.lru_cache(maxsize=256, typed=True)
def _quantiles_of_number(q: Union[int, float], scale: float) -> np.ndarray:
    return _checked_quantiles(host_array(q), scale)


def _checked_quantiles(values: np.ndarray, scale: float) -> np.ndarray:
    if values.dtype.kind not in "biuf":
        raise TypeError("q is a number or an array of them")
    if values.dtype.kind != "f":  # integers of quantile alone take elements as they are, by the linear rule
        values = values.astype(np.int64 if scale == 1 else np.float64)
    values = values / values.dtype.type(scale) if scale != 1 else values
    if values.ndim > 2:
        raise ValueError("q must be a scalar or 1d")
    if values.size and not (0 <= values.min() and values.max() <= 1):
        raise ValueError(f"{'Quantiles' if scale == 1 else 'Percentiles'} must be in the range [0, {scale:g}]")
    return np.asarray(values)


def _interpolated(before: Array, after: Array, share: np.ndarray, weak: bool) -> Array:
    """NumPy's, from the nearer end. `share`: of each quantile, along the first axes; with `weak` it is one number that
    takes the elements' type."""
    near_after = share >= 0.5
    weight: Any = float(share) if weak else share[()]
    if share.ndim:
        weight = array_of(share.reshape(share.shape + (1,) * (before.ndim - share.ndim)), before.session)
    distance = after - before
    if near_after.all():
        return after - distance * (1 - weight)
    if not near_after.any():
        return before + distance * weight
    return where(weight >= 0.5, after - distance * (1 - weight), before + distance * weight)


def _quantile(a: Any, q: Any, scale: float, axis, out, method: str, keepdims: bool, weights, skip_nan: bool) -> Array:
    a = array_of(a)
    if a.dtype.kind == "c":
        raise TypeError("a must be an array of real numbers")
    slices = _Slices(a, axis)
    name = "quantile" if scale == 1 else "percentile"
    if method not in _PLACES:
        raise ValueError(f"{method!r} is not a valid method. Use one of: {', '.join(_PLACES)}")
    values, is_number = _quantiles(q, scale)
    if weights is not None:
        if method != "inverted_cdf":
            raise ValueError(f"Only method 'inverted_cdf' supports weights. Got: {method}.")
        result = _weighted_quantile(slices, values, weights, skip_nan, axis)
        return _arguments.give(slices.result(result, keepdims, values.shape), out, "unsafe")
    dtype = a.dtype
    if not slices.count:
        if not skip_nan and math.prod(slices.shape):
            raise IndexError(f"cannot take a {name} of no elements")
        empty = _creation.full_in(a.session, (*values.shape, *slices.shape), float("nan"), dtype)
        return _arguments.give(slices.result(empty, keepdims, values.shape), out, "unsafe")
    if dtype.kind == "b" and method not in _DISCRETE and (method != "linear" or values.dtype.kind == "f"):
        raise TypeError(f"{name} subtracts elements, which bools do not")
    if skip_nan and dtype.kind == "f":
        # The quantiles' axes in front, the elements' after them.
        q_shape = values.shape + (1,) * len(slices.shape)
        result = _quantile_of_numbers(slices, values.reshape(q_shape), method, is_number)
    else:
        result = _take_between(slices, values, method, is_number)
    return _arguments.give(slices.result(result, keepdims, values.shape), out, "unsafe")


class _Between(NamedTuple):
    """Where the quantiles are among the elements in order."""

    shape: tuple  # the quantiles' shape
    # ranks of the elements before and after (unless `share` is None), and with `has_last` the last
    ranks: Tuple[int, ...]
    share: Optional[np.ndarray]  # weight of the element after


@functools.lru_cache(maxsize=256)
def _between(method: str, count: int, quantiles: bytes, shape: tuple, dtype: np.dtype, has_last: bool) -> _Between:
    place = np.asarray(_PLACES[method](count, np.frombuffer(quantiles, dtype).reshape(shape), np))
    share = None
    if method in _DISCRETE or method == "linear" and place.dtype.kind in "iu":
        places = [place]
    else:
        at_end, at_begin = place >= count - 1, place < 0
        before = np.where(at_end, count - 1, np.where(at_begin, 0, np.floor(place)))
        after = np.where(at_end, count - 1, np.where(at_begin, 0, np.floor(place) + 1))
        places = [before, after]
        share = np.asarray(_shares(place, np.floor(place), method, np), place.dtype)
    ranks = [rank for one in places for rank in one.reshape(-1).astype(np.int64).tolist()]
    return _Between(place.shape, (*ranks, count - 1) if has_last else tuple(ranks), share)


def _take_between(slices: _Slices, q: np.ndarray, method: str, weak: bool) -> Array:
    """By quantiles on the host. NaN are last in order, and what has one is NaN."""
    array = slices.array
    has_last = array.dtype.kind == "f"
    between = _between(method, slices.count, q.tobytes(), q.shape, q.dtype, has_last)
    share = between.share
    if not between.shape:
        *found, last = (*slices.ranked_at(between.ranks), *([] if has_last else [None]))
    else:
        together, size = slices.first_ranked_at(between.ranks), math.prod(between.shape)
        found = [together[i * size:(i + 1) * size] for i in range(1 if share is None else 2)]
        if len(between.shape) != 1:
            found = [reshape(one, (*between.shape, *slices.shape)) for one in found]
        last = _indexing.view(together, -1, Ellipsis) if has_last else None
    if share is None:
        result = found[0]
    else:
        result = _interpolated(found[0], found[1], share, weak and not share.ndim)
    return result if last is None else where(isnan(last), last.astype(result.dtype, copy=False), result)


def _quantile_of_numbers(slices: _Slices, q: np.ndarray, method: str, weak: bool) -> Array:
    """Each slice has its own number of elements that are no NaN, which are first."""
    import stride as xp

    lines = slices.lines
    count = _reductions.sum(~isnan(lines), axis=-1).astype(np.float64)
    quantiles = array_of(q, lines.session)
    place = _PLACES[method](count, quantiles.astype(np.float64), xp)
    last = _elementwise.maximum(count - 1, 0)
    kind = lines.dtype
    if not weak and (q.dtype.kind == "f" or method != "linear"):
        kind = _inference.promote(kind, q.dtype if q.dtype.kind == "f" else _dtypes.float64)

    def taken(*indices: Array) -> List[Array]:
        num_q = math.prod(q.shape[:q.ndim - len(slices.shape)])
        ranks = []
        for index in indices:
            index = _elementwise.minimum(_elementwise.maximum(index, 0), last).astype(np.int64)
            ranks.append(_manipulation.moveaxis(reshape(index, (num_q, *slices.shape)), 0, -1))
        found = slices.ranked(ranks[0] if len(ranks) == 1 else _manipulation.concat(ranks, -1))
        parts = (found[..., i * num_q:(i + 1) * num_q] for i in range(len(indices)))
        return [reshape(_manipulation.moveaxis(one, -1, 0), indices[0].shape) for one in parts]

    if method in _DISCRETE:
        return taken(place)[0]
    before = _elementwise.floor(place)
    share = _shares(place, before, method, xp)
    share = where((place >= last) | (place < 0), 0.0, share).astype(kind)
    lower, upper = taken(before, before + 1)
    distance = upper - lower
    return where(share >= 0.5, upper - distance * (1 - share), lower + distance * share)


def _weighted_quantile(slices: _Slices, q: np.ndarray, weights: Any, skip_nan: bool, axis: Any) -> Array:
    """The first element at which the running sum of the weights, of which the whole is 1, reaches the quantile."""
    lines = slices.lines
    given = array_of(weights, lines.session)
    if given.dtype.kind == "c":
        raise TypeError("weights are real numbers")
    if given.shape == slices.array.shape:
        wide = given
    else:
        if axis is None:
            raise TypeError("Axis must be specified when shapes of a and weights differ.")
        if given.shape != tuple(slices.array.shape[i] for i in slices.axes):
            raise ValueError("Shape of weights must be consistent with shape of a along specified axis.")
        along = tuple(n if i in slices.axes else 1 for i, n in enumerate(slices.array.shape))
        wide = _manipulation.broadcast_to(reshape(given, along), slices.array.shape)
    known = given._node.cached()
    if known is not None and (known < 0).any():
        raise ValueError("Weights must be non-negative.")
    if known is not None and not (np.isfinite(known).all() and known.any()):
        raise ValueError("Weights included NaN, inf or were all zero.")
    share = slices.collapse(_manipulation.copy(wide)).astype(_dtypes.float64)
    if lines.dtype.kind == "f" and skip_nan:
        share = where(isnan(lines), 0.0, share)
    order = _routines.argsort(lines, axis=-1)
    ordered = _routines.take_along_axis(lines, order, axis=-1)
    running = _routines.cumulative_sum(_routines.take_along_axis(share, order, axis=-1), axis=-1)
    running = running / running[..., -1:]
    running = where(running == 0, -1.0, running)
    results = []
    for one in q.reshape(-1).tolist():
        place = _elementwise.minimum(_reductions.sum(running < one, axis=-1, keepdims=True), slices.count - 1)
        results.append(_manipulation.squeeze(_routines.take_along_axis(ordered, place, axis=-1), axis=-1))
    shape = (*q.shape, *slices.shape)
    result = reshape(_manipulation.stack(results), shape) if results else _creation.zeros(shape, lines.dtype)
    if lines.dtype.kind == "f" and not skip_nan:
        last = ordered[..., slices.count - 1]
        result = where(isnan(last), last, result)
    return result


def quantile(
    a: Any,
    q: Any,
    axis: Any = None,
    out: Any = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
    *,
    weights: Any = None,
) -> Array:
    """The q-th quantiles along axes: 0 is the least element, 1 the greatest, 0.5 the median.

    Parameters
        a: an array of real numbers.
        q: a number or numbers from 0 to 1; an array of the service is read.
        axis: None for all, an integer, or a tuple of them.
        out: array of the result's shape that takes it.
        overwrite_input: changes nothing.
        method: linear, or another of NumPy's thirteen.
        keepdims: whether the axes stay, with one element each.
        weights: of the elements, not negative; for the method inverted_cdf. Weights that only the service has are
            not checked.
    Returns
        An array with q's axes in front of those that are kept; NaN where there is one.
    Raises
        ValueError for a q outside and another method; TypeError for complex numbers; AxisError.
    Example
        >>> st.quantile(st.arange(5), [0.25, 0.5]).tolist()
        [1.0, 2.0]
    """
    return _quantile(a, q, 1, axis, out, method, keepdims, weights, False)


def percentile(
    a: Any,
    q: Any,
    axis: Any = None,
    out: Any = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
    *,
    weights: Any = None,
) -> Array:
    """The q-th percentiles along axes; q is from 0 to 100.

    Parameters
        a: an array of real numbers.
        q: percentages from 0 to 100, a number or an array.
        axis: None for all, an integer, or a tuple of them.
        out: array of the result's shape that takes it.
        overwrite_input: changes nothing.
        method: linear, or another of NumPy's thirteen.
        keepdims: whether the axes stay, with one element each.
        weights: of the elements, not negative; for the method inverted_cdf. Weights that only the service has are
            not checked.
    Returns
        An array with q's axes in front of those that are kept; NaN where there is one.
    Raises
        ValueError for a q outside and another method; TypeError for complex numbers; AxisError.
    Example
        >>> float(st.percentile(st.arange(5), 75))
        3.0
    """
    return _quantile(a, q, 100, axis, out, method, keepdims, weights, False)


def nanquantile(
    a: Any,
    q: Any,
    axis: Any = None,
    out: Any = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
    *,
    weights: Any = None,
) -> Array:
    """The q-th quantiles, ignoring NaN; NaN for an all-NaN slice.

    Parameters
        a: an array of real numbers.
        q: a number or numbers from 0 to 1; an array of the service is read.
        axis: None for all, an integer, or a tuple of them.
        out: array of the result's shape that takes it.
        overwrite_input: changes nothing.
        method: linear, or another of NumPy's thirteen.
        keepdims: whether the axes stay, with one element each.
        weights: of the elements, not negative; for the method inverted_cdf. Weights that only the service has are
            not checked.
    Returns
        An array with q's axes in front of those that are kept; NaN where there is one.
    Raises
        ValueError for a q outside and another method; TypeError for complex numbers; AxisError.
    Example
        >>> float(st.nanquantile(st.array([1.0, float("nan"), 3.0]), 0.5))
        2.0
    """
    array = array_of(a)
    if array.dtype.kind == "f":
        _warn_of_nan_slices(array, _inference.normal_axes(axis, array.ndim))
    return _quantile(array, q, 1, axis, out, method, keepdims, weights, True)


def nanpercentile(
    a: Any,
    q: Any,
    axis: Any = None,
    out: Any = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
    *,
    weights: Any = None,
) -> Array:
    """The q-th percentiles, ignoring NaN; q is from 0 to 100.

    Parameters
        a: an array of real numbers.
        q: percentages from 0 to 100, a number or an array.
        axis: None for all, an integer, or a tuple of them.
        out: array of the result's shape that takes it.
        overwrite_input: changes nothing.
        method: linear, or another of NumPy's thirteen.
        keepdims: whether the axes stay, with one element each.
        weights: of the elements, not negative; for the method inverted_cdf. Weights that only the service has are
            not checked.
    Returns
        An array with q's axes in front of those that are kept; NaN where there is one.
    Raises
        ValueError for a q outside and another method; TypeError for complex numbers; AxisError.
    Example
        >>> float(st.nanpercentile(st.array([1.0, float("nan"), 3.0]), 50))
        2.0
    """
    array = array_of(a)
    if array.dtype.kind == "f":
        _warn_of_nan_slices(array, _inference.normal_axes(axis, array.ndim))
    return _quantile(array, q, 100, axis, out, method, keepdims, weights, True)


# --- averages and covariance ---


def average(
    a: Any, axis: Any = None, weights: Any = None, returned: bool = False, *, keepdims: bool = False
):
    """The average along axes, in which elements may have weights.

    Parameters
        a: an array of numbers.
        axis: None for all, an integer, or a tuple of them.
        weights: an array of `a`'s shape, or of that of the axes.
        returned: whether the sum of the weights is returned as well.
        keepdims: whether the axes stay, with one element each.
    Returns
        An array, or with `returned` a tuple of two.
    Raises
        TypeError where shapes differ and no axis is given; ValueError where weights do not fit; ZeroDivisionError where
        their sum is 0, for weights that the host has: for others the result is NaN, since they are not read.
    Example
        >>> float(st.average(st.array([1.0, 4.0]), weights=[3, 1]))
        1.75
    """
    array = array_of(a)
    axes = _inference.normal_axes(axis, array.ndim)
    if weights is None:
        result = _reductions.mean(array, axis=axes, keepdims=keepdims)
        count = math.prod(array.shape[i] for i in axes)
        total = _creation.full_in(array.session, result.shape, count, result.dtype)
        return (result, total) if returned else result
    given = array_of(weights, array.session)
    kinds = (array.dtype, given.dtype, *([_dtypes.float64] if array.dtype.kind in "biu" else []))
    kind = _inference.promote(*kinds)
    if given.shape != array.shape:
        if axis is None:
            raise TypeError("Axis must be specified when shapes of a and weights differ.")
        named = axis if isinstance(axis, tuple) else (axis,)
        axes_given = [_inference.normal_axis(one, array.ndim) for one in named]
        if given.shape != tuple(array.shape[i] for i in axes_given):
            raise ValueError("Shape of weights must be consistent with shape of a along specified axis.")
        given = _manipulation.permute_dims(given, np.argsort(axes_given).tolist())
        given = reshape(given, tuple(n if i in axes else 1 for i, n in enumerate(array.shape)))
    wide = _manipulation.broadcast_to(given, array.shape)
    known = given._node.cached()
    if known is not None and known.size and not np.broadcast_to(known, array.shape).sum(axis=axes).all():
        raise ZeroDivisionError("Weights sum to zero, can't be normalized")
    total = _reductions.sum(wide, axis=axes, dtype=kind, keepdims=keepdims)
    result = _reductions.sum(array * wide.astype(kind), axis=axes, dtype=kind, keepdims=keepdims) / total
    if returned:
        return result, _manipulation.copy(_manipulation.broadcast_to(total, result.shape))
    return result


def cov(
    m: Any,
    y: Any = None,
    rowvar: bool = True,
    bias: bool = False,
    ddof: Optional[int] = None,
    fweights: Any = None,
    aweights: Any = None,
    *,
    dtype=None,
) -> Array:
    """The covariance matrix of variables.

    Parameters
        m: an array of one axis or two, with a variable in each row.
        y: more variables.
        rowvar: False for a variable in each column.
        bias: whether the sums are divided by the number of observations instead of one less.
        ddof: what is subtracted from that number, in place of `bias`.
        fweights: how often each observation counts, in whole numbers; what the host does not have is not checked.
        aweights: the weight of each observation.
        dtype: in which to compute; float64 at least.
    Returns
        A matrix; of one variable an array without axes.
    Raises
        ValueError for more axes, a ddof that is no whole number, and weights that do not fit.
    Example
        >>> st.cov(st.array([[0.0, 1.0, 2.0], [2.0, 1.0, 0.0]])).tolist()
        [[1.0, -1.0], [-1.0, 1.0]]
    """
    if ddof is not None and ddof != int(ddof):
        raise ValueError("ddof must be integer")
    x = array_of(m)
    if x.ndim > 2:
        raise ValueError("m has more than 2 dimensions")
    more = None if y is None else array_of(y, x.session)
    if more is not None and more.ndim > 2:
        raise ValueError("y has more than 2 dimensions")
    if dtype is None:
        kinds = [x.dtype] + ([more.dtype] if more is not None else [])
        dtype = _inference.promote(*kinds, _dtypes.float64)
    rows = _as_rows(x.astype(dtype, copy=False), rowvar)
    if not rows.shape[0]:
        return _creation.zeros((0, 0), rows.dtype)
    if more is not None:
        beside = reshape(more, (1, more.size)) if more.ndim < 2 else more
        beside = _manipulation.matrix_transpose(beside) if not rowvar and beside.shape[0] != 1 else beside
        rows = _manipulation.concat([rows, beside.astype(rows.dtype, copy=False)], 0)
    ddof = (0 if bias else 1) if ddof is None else ddof
    weights = _observation_weights(fweights, aweights, rows)
    if weights is None:
        mean = _reductions.mean(rows, axis=1, keepdims=True)
        factor: Any = float(rows.shape[1] - ddof)
        if factor <= 0:
            _origin.warn("Degrees of freedom <= 0 for slice", RuntimeWarning)
            factor = 0.0
    else:
        total = _reductions.sum(weights)
        mean = _reductions.sum(rows * weights, axis=1, keepdims=True) / total
        if ddof == 0:
            factor = total
        elif aweights is None:
            factor = total - ddof
        else:
            factor = total - ddof * _reductions.sum(weights * array_of(aweights, rows.session)) / total
        factor = _elementwise.maximum(factor, 0.0)
    centred = rows - mean
    other = centred if weights is None else centred * weights
    product = centred @ _elementwise.conjugate(_manipulation.matrix_transpose(other))
    if isinstance(factor, float):
        return _manipulation.squeeze(product * (1 / factor if factor else float("inf")))
    return _manipulation.squeeze(product * (1 / factor))


def _as_rows(x: Array, rowvar: bool) -> Array:
    rows = reshape(x, (1, x.size)) if x.ndim < 2 else x
    return _manipulation.matrix_transpose(rows) if not rowvar and x.ndim == 2 else rows


def _observation_weights(fweights: Any, aweights: Any, rows: Array) -> Optional[Array]:
    result = None
    for given, name in ((fweights, "fweights"), (aweights, "aweights")):
        if given is None:
            continue
        weights = array_of(given, rows.session)
        if weights.ndim > 1:
            raise RuntimeError(f"cannot handle multidimensional {name}")
        if weights.shape[0] != rows.shape[1]:
            raise RuntimeError(f"incompatible numbers of samples and {name}")
        known = weights._node.cached()
        if known is not None and name == "fweights" and (known != np.around(known)).any():
            raise TypeError("fweights must be integer")
        if known is not None and (known < 0).any():
            raise ValueError(f"{name} cannot be negative")
        weights = weights.astype(_dtypes.float64)
        result = weights if result is None else result * weights
    return result


def corrcoef(x: Any, y: Any = None, rowvar: bool = True, *, dtype=None) -> Array:
    """The correlation coefficients of variables: their covariance over the product of their deviations.

    Parameters
        x: an array, or what becomes one.
        y: more variables.
        rowvar: False for a variable in each column.
        dtype: in which to compute; float64 at least.
    Returns
        A matrix of numbers from -1 to 1; of one variable an array without axes.
    Raises
        ValueError for more than two axes; ShapeMismatch for a `y` of another length.
    Example
        >>> st.corrcoef(st.array([[0.0, 1.0, 2.0], [2.0, 1.0, 0.0]])).tolist()
        [[1.0, -1.0], [-1.0, 1.0]]
    """
    matrix = cov(x, y, rowvar, dtype=dtype)
    if not matrix.ndim:
        return matrix / matrix
    deviations = _elementwise.sqrt(diagonal_of(matrix).real)
    matrix = matrix / reshape(deviations, (deviations.size, 1)) / reshape(deviations, (1, deviations.size))
    if matrix.dtype.kind == "c":
        from stride._array_attributes import complex_of

        return complex_of(_elementwise.clip(matrix.real, -1, 1), _elementwise.clip(matrix.imag, -1, 1))
    return _elementwise.clip(matrix, -1, 1)


def diagonal_of(matrix: Array) -> Array:
    from stride import linalg

    return _manipulation.copy(linalg.diagonal(matrix))


# --- bins ---


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
        return _routines.searchsorted(edges, values, side)
    turned = _manipulation.copy(edges[::-1])
    return edges.size - _routines.searchsorted(turned, values, side)


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
        return (24.0 * np.pi**0.5 / size) ** (1.0 / 3.0) * float(_reductions.std(x))
    if name == "doane":
        if size <= 2:
            return 0.0
        deviation = float(_reductions.std(x))
        if not deviation > 0.0:
            return 0.0
        skew_error = np.sqrt(6.0 * (size - 2) / ((size + 1.0) * (size + 3)))
        skew = float(_reductions.mean(((x - _reductions.mean(x)) / deviation) ** 3))
        return extent / (1.0 + np.log2(size) + np.log2(1.0 + abs(skew) / skew_error))
    if name == "stone":
        return _stone_width(x, extent, range)
    upper, lower = percentile(x, [75, 25])._read()
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
        shares = _routines.histogram(x, count, limits)[0]._read() / size
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
        return array_of(_routines._uniform_edges(x, _whole(bins), range), x.session)
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
    counts, edges = _routines.histogram(x, bins, range, weights)
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
        place = _routines.searchsorted(edge, column, "right") - 1
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
        counted = _routines.group_reduce("add", 1, groups, cells + 1)
    else:
        counted = _routines.group_reduce(
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
