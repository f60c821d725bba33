"""Order and choice: places are drawn on the device, and elements taken by them where they are."""

import math
from collections.abc import MutableSequence

import numpy as np

from stride import (
    _assembly, _casts, _conversion, _creation, _dtypes, _elementwise as _e, _errors, _inference, _manipulation,
    _ordering, _routines,
)
from stride._array import Array, host_array
from stride._parameters import shape_of
from stride._ufunc import _give

# The tolerance for the sum of probabilities, as in NumPy.
_TOLERANCE = math.sqrt(np.finfo(float).eps)
# A choice of one in _FEW of at least _MANY numbers is drawn again where it repeats itself, rather than all be ordered.
_FEW, _MANY = 64, 1 << 16
# A weighted choice of one in so many puts the chosen in order alone.
_FEW_SMALLEST = 4


def _is_number(x) -> bool:
    return (
        isinstance(x, (int, np.integer)) or isinstance(x, (np.ndarray, Array)) and not x.ndim and x.dtype.kind in "iu"
    )


def _words(rng, shape, count: int) -> Array:
    """Random numbers that order `count` elements along an axis: the first bits of the generator's words, as many bytes
    as leave less than one order in 256 with two equal numbers. A radix sort takes a pass for each byte."""
    num_bytes = -(-(2 * max(count, 2).bit_length() + 7) // 8)
    return rng.bits(shape) if num_bytes >= 8 else rng.integers(0, 1 << 8 * num_bytes, shape, dtype=np.uint64)


def _order(rng, count: int) -> Array:
    return _ordering.argsort(_words(rng, count, count))


def _distinct(rng, count: int, wanted: int) -> Array:
    """The first different ones of numbers below `count`. So many are drawn that too few of them differ with a
    probability of less than 2^-200, where `_FEW` and `_MANY` hold."""
    drawn = rng.integers(0, count, 2 * wanted + 64)
    order = _ordering.argsort(drawn)  # stable: the first of equal ones comes first
    ordered = _routines.take(drawn, order)
    is_first = _assembly.concat([_creation.ones(1, dtype=_dtypes.bool), ordered[1:] != ordered[:-1]])
    places = _ordering.sort(_e.where(is_first, order, drawn.size))
    return _routines.take(drawn, places[:wanted])


def _elements(x):
    """An array of the service, or one of the host whose type the service does not have."""
    if isinstance(x, Array):
        return x
    x = host_array(x)
    return x if x.dtype.newbyteorder("=") not in _dtypes.NUMBERS else _conversion.asarray(x)


def _taken(x, places: Array, axis: int):
    return _routines.take(x, places, axis=axis) if isinstance(x, Array) else np.take(x, places.to_numpy(), axis=axis)


def permutation(rng, x, axis: int):
    if _is_number(x):
        count = int(x)
        if count < 0:
            raise ValueError(f"a permutation is of 0 numbers or more, not of {count}")
        return _order(rng, count)
    x = _elements(x)
    if not x.ndim:
        raise _errors.AxisError("x is an integer or has an axis", axis, 0)
    axis = _inference.normal_axis(axis, x.ndim)
    return _taken(x, _order(rng, x.shape[axis]), axis)


def shuffle(rng, x, axis: int) -> None:
    if isinstance(x, (Array, np.ndarray)) and not x.ndim:
        raise TypeError("an array without axes cannot be shuffled")
    if isinstance(x, Array):
        x[...] = permutation(rng, x, axis)
    elif isinstance(x, np.ndarray):
        axis = _inference.normal_axis(axis, x.ndim)
        x[...] = np.take(host_array(x), _order(rng, x.shape[axis]).to_numpy(), axis=axis)
    elif isinstance(x, MutableSequence):
        if axis != 0:
            raise NotImplementedError("only an array is shuffled along another axis than 0")
        x[:] = [x[i] for i in _order(rng, len(x)).tolist()]
    else:
        raise TypeError(f"shuffle changes an array or a list, not {type(x).__name__}")


def permuted(rng, x, axis, out) -> Array:
    x = x if isinstance(x, Array) else _conversion.asarray(x)
    if out is not None:
        if not isinstance(out, Array):
            raise TypeError(f"out= is a stride array, not {type(out).__name__}")
        if out.shape != x.shape:
            raise _errors.ShapeMismatch(
                f"out= must have the same shape as x, {x.shape}, not {out.shape}", reason="SHAPE_MISMATCH"
            )
    if axis is None:
        result = _manipulation.reshape(
            _routines.take(_manipulation.reshape(x, (x.size,)), _order(rng, x.size)), x.shape
        )
    else:
        axis = _inference.normal_axis(axis, x.ndim)
        order = _ordering.argsort(_words(rng, x.shape, x.shape[axis]), axis=axis)
        result = _routines.take_along_axis(x, order, axis=axis)
    return _give(result, out, None, "same_kind")


def choice(rng, a, size, replace: bool, p, axis: int):
    shape = shape_of(size)
    wanted = math.prod(shape)
    is_range = _is_number(a)
    if is_range:
        count = int(a)
        if count <= 0 and wanted:
            raise ValueError("a is a positive integer unless no samples are taken")
    else:
        a = _elements(a)
        if not a.ndim:
            raise ValueError("a is an integer or an array with an axis")
        axis = _inference.normal_axis(axis, a.ndim)
        count = a.shape[axis]
        if not count and wanted:
            raise ValueError("a cannot be empty unless no samples are taken")
    if p is None:
        if replace:
            places = rng.integers(0, count, shape) if wanted else _creation.zeros(shape, dtype=_dtypes.int64)
        else:
            if wanted > count:
                raise ValueError(f"{wanted} of {count} cannot be chosen without replacement")
            few = _FEW * wanted <= count and _MANY <= count
            places = _manipulation.reshape(_distinct(rng, count, wanted) if few else _order(rng, count)[:wanted], shape)
    else:
        places = _weighted(rng, count, _probabilities(p, count), shape, wanted, replace)
    return _casts.copy(places) if is_range else _taken(a, places, axis)


def _probabilities(p, count: int) -> np.ndarray:
    given = host_array(p.to_numpy() if isinstance(p, Array) else p)
    values = given.astype(float)
    if values.ndim != 1:
        raise ValueError(f"p has one axis, not {values.ndim}")
    if values.size != count:
        raise ValueError(f"{count} probabilities are needed, not {values.size}")
    if np.isnan(values).any():
        raise ValueError("probabilities contain NaN")
    if (values < 0).any():
        raise ValueError("probabilities are not negative")
    # Probabilities rounded to float16 or float32 add up to 1 less exactly.
    precision = math.sqrt(np.finfo(given.dtype).eps) if given.dtype.kind == "f" else 0
    # NumPy's sum is pairwise, so that it is as close as the tolerance needs.
    if abs(float(values.sum()) - 1) > max(_TOLERANCE, precision):
        raise ValueError("probabilities do not add up to 1")
    return values


def _weighted(rng, count: int, p: np.ndarray, shape: tuple, wanted: int, replace: bool) -> Array:
    if replace:
        running = p.cumsum()
        places = _ordering.searchsorted(_conversion.asarray(running / running[-1]), rng.random(shape), side="right")
        return _e.minimum(places, count - 1)
    if wanted > count:
        raise ValueError(f"{wanted} of {count} cannot be chosen without replacement")
    if wanted > np.count_nonzero(p):
        raise ValueError("fewer probabilities are above 0 than are to be chosen")
    # The smallest of exponential variables with these rates (Efraimidis and Spirakis, 2006).
    rates = _conversion.asarray(p)
    keys = _e.where(rates > 0, rng.standard_exponential(count) / rates, math.inf)
    if _FEW_SMALLEST * wanted <= count and wanted:
        # Sorts only the smallest.
        smallest = _ordering.partitioned(keys, [wanted - 1], 0, True)[:wanted]
        smallest = _routines.take(smallest, _ordering.argsort(_routines.take(keys, smallest)))
        return _manipulation.reshape(smallest, shape)
    return _manipulation.reshape(_ordering.argsort(keys)[:wanted], shape)
