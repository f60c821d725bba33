"""Medians, percentiles and quantiles, as NumPy computes them."""

import functools
import math
from typing import Any, List, NamedTuple, Optional, Sequence, Tuple, Union

import numpy as np

from stride import (
    _arguments, _assembly, _casts, _creation, _deviations, _dtypes, _elementwise, _indexing, _inference, _manipulation,
    _ordering, _reductions, _routines, _running,
)
from stride._array import Array, array_of, host_array
from stride._elementwise import isnan, where
from stride._manipulation import reshape

__all__ = ["median", "nanmedian", "nanpercentile", "nanquantile", "percentile", "quantile"]

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
        return _ordering.ranked(self.lines, ranks, len(self.shape))

    def ranked_at(self, ranks: Tuple[int, ...]) -> List[Array]:
        """For each of these places the elements that a sort would put there."""
        found = self.first_ranked_at(ranks)
        return [_indexing.view(found, i, Ellipsis) for i in range(len(ranks))]

    def first_ranked_at(self, ranks: Tuple[int, ...]) -> Array:
        """The same along a first axis."""
        array, axis = (self.array, self.axes[0]) if len(self.axes) == 1 else (self.lines, len(self.shape))
        found = _ordering.ranked_at(array, ranks, axis)
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
        return _arguments.give(slices.result(_deviations.mean(slices.lines, axis=-1), keepdims), out, "unsafe")
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
        result = _deviations.mean(found_first[:len(middle)], axis=0)
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
    result = _deviations.mean(slices.ranked(_assembly.concat(middle, -1)), axis=-1)
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
        found = slices.ranked(ranks[0] if len(ranks) == 1 else _assembly.concat(ranks, -1))
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
    share = slices.collapse(_casts.copy(wide)).astype(_dtypes.float64)
    if lines.dtype.kind == "f" and skip_nan:
        share = where(isnan(lines), 0.0, share)
    order = _ordering.argsort(lines, axis=-1)
    ordered = _routines.take_along_axis(lines, order, axis=-1)
    running = _running.cumulative_sum(_routines.take_along_axis(share, order, axis=-1), axis=-1)
    running = running / running[..., -1:]
    running = where(running == 0, -1.0, running)
    results = []
    for one in q.reshape(-1).tolist():
        place = _elementwise.minimum(_reductions.sum(running < one, axis=-1, keepdims=True), slices.count - 1)
        results.append(_manipulation.squeeze(_routines.take_along_axis(ordered, place, axis=-1), axis=-1))
    shape = (*q.shape, *slices.shape)
    result = reshape(_assembly.stack(results), shape) if results else _creation.zeros(shape, lines.dtype)
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
