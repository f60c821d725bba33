"""Differences, integrals, interpolation and convolution, as NumPy's functions of these names do."""

import math
import operator
from typing import Any, List, Optional, Tuple

import numpy as np

from stride import _arguments, _dtypes, _elementwise, _errors, _indexing, _inference
from stride import _ordering, _reductions, _routines, _running
from stride._array import _SCALARS, Array, array_of, node_of, wrap
from stride._assembly import concat
from stride._elementwise import where
from stride._graph import record
from stride._manipulation import broadcast_to, ravel, reshape
from stride._numbers import Number
from stride.v1 import operation_pb2 as pb

__all__ = [
    "convolve",
    "correlate",
    "diff",
    "ediff1d",
    "gradient",
    "interp",
    "trapezoid",
    "unwrap",
]


def _part(axis: int, begin: Optional[int], end: Optional[int], step: Optional[int] = None) -> tuple:
    return (slice(None),) * axis + (slice(begin, end, step),)


# --- differences and integrals ---


def diff(a, n: int = 1, axis: int = -1, prepend=None, append=None) -> Array:
    """Differences of neighbours along an axis, `n` times over.

    Parameters
        a: an array.
        n: how often.
        axis: the axis.
        prepend, append: numbers or arrays that stand before and after the elements.
    Returns
        An array with n elements less along the axis; of bools, whether neighbours differ.
    Raises
        ValueError for a negative n and an array without axes; AxisError for an axis that `a` lacks.
    Example
        >>> st.diff(st.array([1, 4, 9])).tolist()
        [3, 5]
    """
    x, n = array_of(a), operator.index(n)
    if n == 0:
        return x
    if n < 0:
        raise ValueError("n must not be negative")
    if not x.ndim:
        raise ValueError("an array without axes has no differences")
    axis = _inference.normal_axis(axis, x.ndim)
    beside = []
    for part in (prepend, append):
        if part is None or part is np._NoValue:
            beside.append([])
            continue
        part = wrap(node_of(part, x.session))
        if not part.ndim:
            part = broadcast_to(part, x.shape[:axis] + (1,) + x.shape[axis + 1:])
        beside.append([part])
    if beside != [[], []]:
        x = concat([*beside[0], x, *beside[1]], axis=axis)
    before = (slice(None),) * axis
    for _ in range(n):
        later, earlier = x[before + (slice(1, None),)], x[before + (slice(None, -1),)]
        x = (later != earlier) if x.dtype.kind == "b" else later - earlier
    return x


def ediff1d(ary: Any, to_end: Any = None, to_begin: Any = None) -> Array:
    """Differences of neighbours among all elements in C order, between other numbers.

    Parameters
        ary: an array.
        to_end, to_begin: what stands after and before them, of a type that is cast to `ary`'s.
    Returns
        An array of one axis and of `ary`'s type.
    Raises
        TypeError for numbers that are not cast to it.
    Example
        >>> st.ediff1d([1, 4, 9], to_begin=0).tolist()
        [0, 3, 5]
    """
    array = ravel(ary)
    parts = [array[1:] - array[:-1]]
    for given, name in ((to_begin, "to_begin"), (to_end, "to_end")):
        if given is None:
            continue
        beside = array_of(given, array.session)
        if not np.can_cast(beside.dtype, array.dtype, "same_kind"):
            raise TypeError(f"dtype of `{name}` must be compatible with input `ary` under the `same_kind` rule.")
        beside = ravel(beside).astype(array.dtype, copy=False)
        parts = [beside, *parts] if name == "to_begin" else [*parts, beside]
    return parts[0] if len(parts) == 1 else concat(parts)


def trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: int = -1) -> Array:
    """The integral along an axis by the trapezoidal rule.

    Parameters
        y: the function's values.
        x: where they are, along one axis or of `y`'s shape.
        dx: the distance between them where `x` is not given.
        axis: the axis.
    Returns
        An array without the axis.
    Raises
        AxisError for an axis that `y` lacks; ShapeMismatch where shapes do not fit.
    Example
        >>> float(st.trapezoid(st.array([1, 2, 3])))
        4.0
    """
    values = array_of(y)
    axis = _inference.normal_axis(axis, values.ndim)
    step: Any = dx
    if x is not None:
        places = array_of(x, values.session)
        if places.ndim == 1:
            step = diff(places)
            step = reshape(step, tuple(step.size if i == axis else 1 for i in range(values.ndim)))
        else:
            step = diff(places, axis=axis)
    later, earlier = values[_part(axis, 1, None)], values[_part(axis, None, -1)]
    return _reductions.sum(step * (later + earlier) / 2.0, axis=axis)


def gradient(f: Any, *varargs: Any, axis: Any = None, edge_order: int = 1):
    """The derivatives along axes by central differences, one-sided at the ends.

    Parameters
        f: the function's values.
        varargs: the distances: one number for all axes, or for each axis a number or the places.
        axis: which axes; None for all.
        edge_order: 1 or 2: how exact the ends are.
    Returns
        An array for one axis, else a tuple of them.
    Raises
        ValueError for axes of too few elements, places that do not fit and another `edge_order`; TypeError for another
        number of distances.
    Example
        >>> st.gradient(st.array([1.0, 2.0, 4.0])).tolist()
        [1.0, 1.5, 2.0]
    """
    values = array_of(f)
    axes = _inference.normal_axes(axis, values.ndim)
    count = len(axes)
    if not count and not varargs:
        return ()
    if not varargs:
        steps: List[Any] = [1.0] * count
    elif len(varargs) == 1 and not (isinstance(varargs[0], Array) and varargs[0].ndim) and np.ndim(varargs[0]) == 0:
        steps = [varargs[0]] * count
    elif len(varargs) == count:
        steps = [_step(one, values, along) for one, along in zip(varargs, axes)]
    else:
        raise TypeError("invalid number of arguments")
    if edge_order > 2:
        raise ValueError("'edge_order' greater than 2 not supported")
    if values.dtype.kind == "b":
        raise _errors.DataTypeMismatch("gradient subtracts elements, which bools do not", reason="DATA_TYPE_MISMATCH")
    if values.dtype.kind not in "fc":
        values = values.astype(_dtypes.float64)
    results = tuple(_derivative(values, along, step, edge_order) for along, step in zip(axes, steps))
    return results[0] if count == 1 else results


def _step(given: Any, values: Array, axis: int) -> Any:
    """A number, or distances of neighbours as an array."""
    if isinstance(given, _SCALARS):
        return given
    places = array_of(given, values.session)
    if not places.ndim:
        return places
    if places.ndim != 1:
        raise ValueError("distances must be either scalars or 1d")
    if places.size != values.shape[axis]:
        raise ValueError("when 1d, distances must match the length of the corresponding dimension")
    if places.dtype.kind in "iu":
        places = places.astype(_dtypes.float64)
    known = places._node.cached()
    step = places[1:] - places[:-1]
    if known is not None and known.size > 1:  # as NumPy, which computes equal distances by the other formula
        host = np.diff(known)
        if (host == host[0]).all():
            return host[0]
    return step


def _derivative(f: Array, axis: int, step: Any, edge_order: int) -> Array:
    extent = f.shape[axis]
    if extent < edge_order + 1:
        raise ValueError(
            "Shape of array too small to calculate a numerical gradient, "
            "at least (edge_order + 1) elements are required."
        )
    uniform = isinstance(step, _SCALARS) or not step.ndim

    def at(begin: Optional[int], end: Optional[int]) -> Array:
        return _indexing.view(f, *_part(axis, begin, end))

    def weights(one: Array) -> Array:
        return reshape(one, tuple(one.size if i == axis else 1 for i in range(f.ndim)))

    if uniform:
        inner = (at(2, None) - at(None, -2)) / (2.0 * step)
    else:
        left, right = step[:-1], step[1:]
        a = weights(-right / (left * (left + right)))
        b = weights((right - left) / (left * right))
        c = weights(left / (right * (left + right)))
        inner = a * at(None, -2) + b * at(1, -1) + c * at(2, None)
    if edge_order == 1:
        first, last = at(1, 2) - at(0, 1), at(-1, None) - at(-2, -1)
        if type(step) is not float or step != 1.0:  # otherwise there is no division
            first_step, last_step = (step, step) if uniform else (step[0], step[-1])
            first, last = first / first_step, last / last_step
    else:
        if uniform:
            ends = [(-1.5 / step, 2.0 / step, -0.5 / step), (0.5 / step, -2.0 / step, 1.5 / step)]
        else:
            d1, d2, e1, e2 = step[0], step[1], step[-2], step[-1]
            ends = [
                (-(2.0 * d1 + d2) / (d1 * (d1 + d2)), (d1 + d2) / (d1 * d2), -d1 / (d2 * (d1 + d2))),
                (e2 / (e1 * (e1 + e2)), -(e2 + e1) / (e1 * e2), (2.0 * e2 + e1) / (e2 * (e1 + e2))),
            ]
        first = ends[0][0] * at(0, 1) + ends[0][1] * at(1, 2) + ends[0][2] * at(2, 3)
        last_three = (at(-3, -2), at(-2, -1), at(-1, None))
        last = ends[1][0] * last_three[0] + ends[1][1] * last_three[1] + ends[1][2] * last_three[2]
    return concat([first, inner, last], axis).astype(f.dtype, copy=False)


def unwrap(p: Any, discont: Any = None, axis: int = -1, *, period: Any = 2 * math.pi) -> Array:
    """Angles without jumps: what differs by more than half a period from its neighbour is moved by whole periods.

    Parameters
        p: an array of real numbers.
        discont: what counts as a jump; half a period where it is less or not given.
        axis: the axis.
        period: the period.
    Returns
        An array of `p`'s type, or where the period is no integer of float64.
    Raises
        AxisError for an axis that `p` lacks.
    Example
        >>> st.unwrap([0, 1, 2, -1, 0], period=4).tolist()
        [0, 1, 2, 3, 4]
    """
    array = array_of(p)
    axis = _inference.normal_axis(axis, array.ndim)
    difference = diff(array, axis=axis)
    discont = period / 2 if discont is None else discont
    kind = np.result_type(difference.dtype, period)
    if kind.kind in "iu":
        high, remainder = divmod(period, 2)
        ambiguous = remainder == 0
    else:
        ambiguous, high = True, period / 2
    low = -high
    turned = (difference - low) % period + low
    if ambiguous:
        turned = where((turned == low) & (difference > 0), np.asarray(high, kind)[()], turned)
    correction = where(_elementwise.absolute(difference) < discont, np.zeros((), kind)[()], turned - difference)
    running = _running.cumsum(correction, axis)
    moved = array[_part(axis, 1, None)] + running
    return concat([array[_part(axis, None, 1)].astype(kind, copy=False), moved.astype(kind, copy=False)], axis)


# --- interpolation ---


def interp(x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None, period: Any = None) -> Array:
    """A function's values between known ones, on straight lines.

    Parameters
        x: where they are wanted.
        xp: where they are known, in rising order, or in any with `period`.
        fp: the known values.
        left, right: the values before the first place and after the last; by default the first and last ones.
        period: the function's period.
    Returns
        An array of float64, or complex128 for complex values.
    Raises
        ValueError for no values, for places and values of different numbers, and a period of 0.
    Example
        >>> st.interp([1.5, 5.0], [1, 2, 3], [3, 2, 0]).tolist()
        [2.5, 0.0]
    """
    places, known, values = _arguments.arrays(x, xp, fp)
    for one in (places, known):
        if one.dtype.kind == "c":
            raise TypeError("the places of interp are real numbers, not complex ones")
    kind = _dtypes.complex128 if values.dtype.kind == "c" else _dtypes.float64
    if known.ndim != 1 or values.ndim != 1:
        raise ValueError("Data points must be 1-D sequences")
    if known.shape != values.shape:
        raise ValueError("fp and xp are not of the same length.")
    if period is not None:
        if period == 0:
            raise ValueError("period must be a non-zero value")
        period, left, right = abs(period), None, None
        places, known = (one.astype(_dtypes.float64, copy=False) for one in (places, known))
        places, known = places % period, known % period
        order = _ordering.argsort(known)
        known, values = _routines.take(known, order), _routines.take(values, order)
        known = concat([known[-1:] - period, known, known[:1] + period])
        values = concat([values[-1:], values, values[:1]])
    if not known.size:
        raise ValueError("array of sample points is empty")
    message = pb.Interpolate()
    for name, end in (("left", left), ("right", right)):
        if end is not None:
            getattr(message, name).CopyFrom(Number(np.asarray(end, kind)[()]).to_proto())
    nodes = (places._node, known._node, values._node)
    prepared = _routines.prepared_with(
        pb.Operation(interpolate=message), "interpolate", ("input", "known", "values")
    )
    return _routines._record(prepared, places.shape, kind, nodes)


# --- convolution ---

_NUMBERS = {"valid": pb.Correlate.MODE_VALID, "same": pb.Correlate.MODE_SAME, "full": pb.Correlate.MODE_FULL}


def _vectors(a: Any, v: Any) -> Tuple[Array, Array]:
    first, second = _arguments.arrays(a, v)
    for one, name in ((first, "a"), (second, "v")):
        if one.ndim != 1:
            raise ValueError(f"vectors have one axis, {name} has {one.ndim}")
        if not one.size:
            raise ValueError(f"{name} cannot be empty")
    return first, second


def _correlated(a: Array, v: Array, mode: str, convolve: bool) -> Array:
    shorter, longer = min(a.size, v.size), max(a.size, v.size)
    length = {"valid": longer - shorter + 1, "same": longer, "full": longer + shorter - 1}[mode]

    def build(flush, node, operands):
        message = pb.Correlate(left=operands[0], right=operands[1], mode=_NUMBERS[mode], convolve=convolve)
        flush.operation(node.handle, node.origin, correlate=message)

    kind = _inference.promote(a.dtype, v.dtype)
    return wrap(record(a.session, (length,), kind, build, (a._node, v._node), depth=shorter))


def correlate(a: Any, v: Any, mode: Any = "valid") -> Array:
    """The sums of products of one vector with the other's conjugate at each place along it.

    Parameters
        a, v: arrays of one axis.
        mode: valid (where both overlap as a whole), same (as long as the longer one) or full (where they overlap).
    Returns
        An array of the type that both have together.
    Raises
        ValueError for empty vectors, more axes and another mode.
    Example
        >>> st.correlate([1, 2, 3], [0, 1, 1]).tolist()
        [5]
    """
    return _correlated(*_vectors(a, v), _arguments.correlate_mode(mode), False)


def convolve(a: Any, v: Any, mode: Any = "full") -> Array:
    """The discrete convolution of two vectors.

    Parameters
        a, v: arrays of one axis.
        mode: full (where they overlap), same (as long as the longer one) or valid (where both overlap as a whole).
    Returns
        An array of the type that both have together.
    Raises
        ValueError for empty vectors, more axes and another mode.
    Example
        >>> st.convolve([1, 2, 3], [0, 1]).tolist()
        [0, 1, 2, 3]
    """
    mode = _arguments.correlate_mode(mode)
    rows = (reshape(one, (1,)) if not one.ndim else one for one in _arguments.arrays(a, v))
    return _correlated(*_vectors(*rows), mode, True)
