"""Padding of arrays at their edges, with NumPy's modes."""

import math
from typing import Any, Callable, List, Optional, Tuple

import numpy as np

from stride import (
    _assembly, _casts, _creation, _deviations, _elementwise, _inference, _manipulation, _reductions, _routines, _views,
)
from stride._array import Array, array_of, host_array
from stride._assembly import concat
from stride._calculus import _part
from stride._manipulation import broadcast_to, reshape
from stride._numbers import Number

__all__ = ["pad"]


def _pairs(given: Any, rank: int, name: str) -> List[Tuple[Any, Any]]:
    """Two numbers for each axis."""
    if isinstance(given, dict):
        pairs: List[Tuple[Any, Any]] = [(0, 0)] * rank
        for axis, one in given.items():
            before, after = one if isinstance(one, (tuple, list)) else (one, one)
            pairs[_inference.normal_axis(axis, rank)] = before, after
        return pairs
    values = host_array(given)
    try:
        wide = np.broadcast_to(values, (rank, 2)) if rank else np.zeros((0, 2), values.dtype)
    except ValueError:
        raise ValueError(
            f"operands could not be broadcast together with remapped shapes: {name} of {values.shape} for {rank} axes"
        ) from None
    return [(before, after) for before, after in wide]


_STATISTICS = {"maximum": _reductions.max, "minimum": _reductions.min, "mean": _deviations.mean, "median": None}
_PAD_OPTIONS = {
    "constant": ("constant_values",), "edge": (), "empty": (), "wrap": (), "linear_ramp": ("end_values",),
    "maximum": ("stat_length",), "mean": ("stat_length",), "median": ("stat_length",), "minimum": ("stat_length",),
    "reflect": ("reflect_type",), "symmetric": ("reflect_type",),
}


def pad(array: Any, pad_width: Any, mode: Any = "constant", **kwargs: Any) -> Array:
    """An array with more elements before and after its own along axes.

    Parameters
        array: the array.
        pad_width: how many: a number, a pair of them before and after, a pair for each axis, or a dict of pairs by
            axis.
        mode: constant, edge, empty (zeros), linear_ramp, maximum, mean, median, minimum, reflect, symmetric, wrap, or a
            function of a vector, its two widths, its axis and `kwargs`, which writes it.
        kwargs: constant_values, end_values, stat_length and reflect_type (even or odd), each for its modes.
    Returns
        An array of the same type.
    Raises
        ValueError for negative widths, another mode, and keywords that it does not have; TypeError for widths that are
        no integers.
    Example
        >>> st.pad([1, 2], (1, 2), constant_values=9).tolist()
        [9, 1, 2, 9, 9]
    """
    x = array_of(array)
    widths = _plain_widths(pad_width, x.ndim) or _checked_widths(pad_width, x.ndim)
    if callable(mode):
        return _pad_by(x, widths, mode, kwargs)
    if mode not in _PAD_OPTIONS:
        raise ValueError(f"mode {mode!r} is not supported")
    unknown = set(kwargs) - set(_PAD_OPTIONS[mode])
    if unknown:
        raise ValueError(f"unsupported keyword arguments for mode {mode!r}: {unknown}")
    if mode in ("constant", "empty"):
        values = kwargs.get("constant_values", 0)
        is_zero = type(values) is int and not values
        return _pad_constant(x, widths, [(0, 0)] * x.ndim if is_zero else _pairs(values, x.ndim, "constant_values"))
    if not x.size:
        for axis, pair in enumerate(widths):
            if not x.shape[axis] and max(pair):
                raise ValueError(f"can't extend empty axis {axis} using modes other than 'constant' or 'empty'")
    ends = _pairs(kwargs.get("end_values", 0), x.ndim, "end_values")
    length = kwargs.get("stat_length")
    lengths = [(None, None)] * x.ndim if length is None else _pairs(length, x.ndim, "stat_length")
    for one in (value for pair in lengths for value in pair):
        if one is not None and one < 0:
            raise ValueError("index can't contain negative values")
        if one == 0 and mode in ("maximum", "minimum"):
            raise ValueError("stat_length of 0 yields no value for padding")
    for axis, (before, after) in enumerate(widths):
        if not before and not after:
            continue
        if mode == "edge":
            parts = [_repeated(x, axis, slice(0, 1), before), x, _repeated(x, axis, slice(-1, None), after)]
        elif mode == "linear_ramp":
            parts = [_ramp(x, axis, before, ends[axis][0], True), x, _ramp(x, axis, after, ends[axis][1], False)]
        elif mode in _STATISTICS:
            parts = [
                _statistic(x, axis, before, mode, lengths[axis][0], True), x,
                _statistic(x, axis, after, mode, lengths[axis][1], False),
            ]
        elif mode == "wrap":
            extent = x.shape[axis]
            places = np.arange(-before, extent + after) % extent
            x = _routines.take(x, places, axis=axis)
            continue
        else:
            x = _reflected(x, axis, before, after, mode, kwargs.get("reflect_type", "even"))
            continue
        x = concat([part.astype(x.dtype, copy=False) for part in parts], axis)
    return x


def _plain_widths(given: Any, rank: int) -> Optional[List[Tuple[int, int]]]:
    """Widths that are given by Python's integers, and need no more checks; None for others."""
    if type(given) is int:
        return [(given, given)] * rank if given >= 0 else None
    if type(given) is tuple and len(given) == rank:
        for pair in given:
            if type(pair) is not tuple or len(pair) != 2 or type(pair[0]) is not int or type(pair[1]) is not int:
                return None
            if pair[0] < 0 or pair[1] < 0:
                return None
        return list(given)
    return None


def _checked_widths(given: Any, rank: int) -> List[Tuple[int, int]]:
    if not isinstance(given, dict) and host_array(given).dtype.kind not in "iu":
        raise TypeError("`pad_width` must be of integral type.")
    widths = _pairs(given, rank, "pad_width")
    for pair in widths:
        for one in pair:
            if not hasattr(one, "__index__"):
                raise TypeError("`pad_width` must be of integral type.")
            if one < 0:
                raise ValueError("index can't contain negative values")
    return [(int(before), int(after)) for before, after in widths]


def _pad_constant(x: Array, widths: List[Tuple[int, int]], values: List[Tuple[Any, Any]]) -> Array:
    if not any(map(any, widths)):
        return _casts.copy(x)
    shape = tuple([n + before + after for n, (before, after) in zip(x.shape, widths)])
    inner = [("slice", i, before, before + n, None) for i, (n, (before, _)) in enumerate(zip(x.shape, widths))]
    filled: List[Tuple[Any, _views.View]] = [(x._node, _views.View(tuple(inner)))]
    zero = Number(x.dtype.type(0))
    # As one axis after another is padded: before an axis the result has its whole extents, after it the array's.
    for axis, ((before, after), (low, high)) in enumerate(zip(widths, values)):
        for begin, end, value in ((0, before, low), (shape[axis] - after, shape[axis], high)):
            if begin < end and math.prod(shape[:axis]) and math.prod(x.shape[axis + 1:]):
                is_zero = type(value) is int and not value
                number = zero if is_zero else Number(np.asarray(value).astype(x.dtype)[()])
                filled.append((number, _views.View((("slice", axis, begin, end, None), *inner[axis + 1:]))))
    return _assembly.assembled(x.session, shape, x.dtype, filled)


def _repeated(x: Array, axis: int, key: slice, count: int) -> Array:
    part = x[(slice(None),) * axis + (key,)]
    return broadcast_to(part, (*x.shape[:axis], count, *x.shape[axis + 1:]))


def _ramp(x: Array, axis: int, count: int, end: Any, before: bool) -> Array:
    edge = x[_part(axis, 0, 1)] if before else x[_part(axis, -1, None)]
    shape = tuple(count if i == axis else 1 for i in range(x.ndim))
    ramp = _creation.linspace(
        array_of(end, x.session), _manipulation.squeeze(edge, axis), count, False, dtype=x.dtype, axis=axis
    ) if x.ndim > 1 else _creation.linspace(end, edge[0], count, False, dtype=x.dtype)
    ramp = reshape(ramp, (*x.shape[:axis], count, *x.shape[axis + 1:])) if x.ndim > 1 else reshape(ramp, shape)
    return ramp if before else _manipulation.flip(ramp, axis)


def _statistic(x: Array, axis: int, count: int, mode: str, length: Any, before: bool) -> Array:
    extent = x.shape[axis]
    number = extent if length is None or length > extent else int(length)
    part = x[_part(axis, 0, number)] if before else x[_part(axis, extent - number, None)]
    if mode == "median":
        from stride import _quantiles

        value = _quantiles.median(part, axis=axis, keepdims=True)
    else:
        value = _STATISTICS[mode](part, axis, keepdims=True)  # type: ignore[misc]
    if mode in ("mean", "median") and x.dtype.kind in "iu":
        value = _elementwise.rint(value)
    return broadcast_to(value.astype(x.dtype, copy=False), (*x.shape[:axis], count, *x.shape[axis + 1:]))


def _reflected(x: Array, axis: int, before: int, after: int, mode: str, kind: str) -> Array:
    """With the elements in opposite order beyond an end, once or several times. Odd ones are mirrored at the end's
    value."""
    if kind not in ("even", "odd"):
        raise ValueError(f"reflect_type is even or odd, not {kind!r}")
    extent = x.shape[axis]
    if extent == 1 and mode == "reflect":
        return concat([_repeated(x, axis, slice(0, 1), before), x, _repeated(x, axis, slice(0, 1), after)], axis)
    without_edge = mode == "reflect"
    if kind == "even":
        places = np.arange(-before, extent + after)
        turn = 2 * extent - 2 if without_edge else 2 * extent
        places = places % turn
        places = np.where(places >= extent, turn - places - (0 if without_edge else 1), places)
        return _routines.take(x, places, axis=axis)
    while before or after:
        size = x.shape[axis]
        most = size - 1 if without_edge else size
        low, high = min(before, most), min(after, most)
        first, last = x[_part(axis, 0, 1)], x[_part(axis, -1, None)]
        parts = [x]
        if low:
            begin = 1 if without_edge else 0
            parts = [2 * first - _manipulation.flip(x[_part(axis, begin, begin + low)], axis), *parts]
        if high:
            end = size - 1 if without_edge else size
            parts = [*parts, 2 * last - _manipulation.flip(x[_part(axis, end - high, end)], axis)]
        x = concat(parts, axis)
        before, after = before - low, after - high
    return x


def _pad_by(x: Array, widths: List[Tuple[int, int]], function: Callable, kwargs: dict) -> Array:
    """A function of the user's writes each vector of the padded array."""
    result = _pad_constant(x, widths, [(0, 0)] * x.ndim)
    for axis, pair in enumerate(widths):
        lines = _manipulation.moveaxis(result, axis, -1)
        for place in np.ndindex(*lines.shape[:-1]):
            line = lines[(*place, slice(None))]
            function(line, pair, axis, kwargs)
    return result
