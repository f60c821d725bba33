"""Regular arrays: spaced numbers, and grids of places."""

from typing import Any, Callable, List, Optional, Tuple

import numpy as np

from stride import (
    _arguments, _assembly, _casts, _creation, _dtypes, _elementwise, _host_functions, _inference, _local, _manipulation,
    _routines,
)
from stride._array import _SCALARS, Array, array_of, host_array
from stride._creation import arange, zeros
from stride._manipulation import broadcast_to, reshape

__all__ = [
    "c_",
    "fromfunction",
    "geomspace",
    "indices",
    "ix_",
    "logspace",
    "mgrid",
    "ogrid",
    "r_",
    "vander",
]


# --- spaced numbers ---


def logspace(
    start, stop, num: int = 50, endpoint: bool = True, base: Any = 10.0, dtype=None, axis: int = 0
) -> Array:
    """Powers of `base` whose exponents are at equal distances.

    Parameters
        start, stop: the first and last exponent; numbers or arrays that broadcast.
        num: how many.
        endpoint: whether `stop` is the last.
        base: a number or an array.
        dtype: the element type; by default that of the powers.
        axis: where the new axis is, for arrays.
    Returns
        An array.
    Raises
        ValueError for a negative `num`.
    Example
        >>> st.logspace(0, 2, 3).tolist()
        [1.0, 10.0, 100.0]
    """
    if not isinstance(base, _SCALARS) and np.ndim(base):
        start, stop, base = _manipulation.broadcast_arrays(*_arguments.arrays(start, stop, base))
        base = _manipulation.expand_dims(base, axis)
    exponents = _creation.linspace(start, stop, num, endpoint, axis=axis)
    result = _elementwise.power(base, exponents)
    return result if dtype is None else result.astype(dtype, copy=False)


def geomspace(start, stop, num: int = 50, endpoint: bool = True, dtype=None, axis: int = 0) -> Array:
    """Numbers of which each is the same multiple of the one before.

    Parameters
        start, stop: the first and last, which are not 0; numbers or arrays that broadcast.
        num: how many.
        endpoint: whether `stop` is the last.
        dtype: the element type; by default that of the powers.
        axis: where the new axis is, for arrays.
    Returns
        An array.
    Raises
        ValueError for a 0 that the host knows, and a negative `num`.
    Example
        >>> st.geomspace(1, 8, 4).tolist()
        [1.0, 2.0, 4.0, 8.0]
    """
    num = _arguments.count(num, "the number of samples")
    first, last = (one if isinstance(one, Array) else host_array(one) for one in (start, stop))
    for one in (first, last):
        known = one if isinstance(one, np.ndarray) else one._node.cached()
        if known is not None and (known == 0).any():
            raise ValueError("Geometric sequence cannot include zero")
    if not isinstance(start, Array) and not isinstance(stop, Array) and not (first.ndim or last.ndim):
        return _geometric_between_numbers(first, last, num, endpoint, dtype, axis)
    first, last = _arguments.arrays(first, last)
    kind = _inference.promote(first.dtype, last.dtype, float, _dtypes.dtype_of(float if dtype is None else dtype))
    target = kind if dtype is None else _dtypes.dtype_of(dtype)
    first, last = _manipulation.broadcast_arrays(first.astype(kind), last.astype(kind))
    unit = _elementwise.sign(first)
    last = last / unit
    exponents = _creation.linspace(
        _elementwise.log10(first / unit), _elementwise.log10(last), num, endpoint, axis=0
    )
    result = _elementwise.power(10.0, exponents)
    inner = [result[1:-1] if endpoint and num > 1 else result[1:]] if num else []
    ends = [_manipulation.expand_dims(one, 0).astype(result.dtype) for one in (first / unit, last)]
    if num:
        result = _assembly.concat([ends[0], *inner, *([ends[1]] if endpoint and num > 1 else [])], 0)
    result = result * unit
    return _manipulation.moveaxis(result, 0, axis).astype(target, copy=False)


def _geometric_between_numbers(first, last, num: int, endpoint: bool, dtype, axis: int) -> Array:
    _inference.normal_axis(axis, 1)
    kind = np.result_type(first, last, float(num), np.zeros((), dtype))
    first, last = first.astype(kind), last.astype(kind)
    unit = np.sign(first)
    begin, end = first / unit, last / unit
    exponents = _creation.linspace(np.log10(begin)[()], np.log10(end)[()], num, endpoint)
    result = _elementwise.power(10.0, exponents)
    if num:
        places = arange(num)
        result = _elementwise.where(places == 0, begin[()], result)
        if endpoint and num > 1:
            result = _elementwise.where(places == num - 1, end[()], result)
    return (result * unit[()]).astype(kind if dtype is None else dtype, copy=False)


# --- grids ---


def indices(dimensions: Any, dtype: Any = int, sparse: bool = False):
    """The places of a grid: for each axis an array with the index along it.

    Parameters
        dimensions: the grid's shape.
        dtype: the element type.
        sparse: whether there is a tuple of arrays with one element along the other axes.
    Returns
        An array with an axis more in front, or a tuple.
    Raises
        ValueError for a negative extent.
    Example
        >>> st.indices((2, 2)).tolist()
        [[[0, 0], [1, 1]], [[0, 1], [0, 1]]]
    """
    shape = tuple(dimensions)
    rank = len(shape)
    lines = [
        reshape(arange(extent, dtype=dtype), tuple(extent if i == axis else 1 for i in range(rank)))
        for axis, extent in enumerate(shape)
    ]
    if sparse:
        return tuple(lines)
    if not lines:
        return zeros((0,), dtype)
    return _assembly.stack([broadcast_to(one, shape) for one in lines])


def fromfunction(function: Callable, shape: Any, *, dtype: Any = float, like=None, **kwargs) -> Any:
    """The result of a function of a grid's indices, which it receives as arrays, one for each axis.

    Parameters
        function: is called once, with as many arrays as there are axes.
        shape: the grid's shape.
        dtype: the type of the places.
        like: an array of the service, whose kind the result has anyway.
        kwargs: arguments that the function gets as well.
    Returns
        The function's result.
    Raises
        What the function raises.
    Example
        >>> st.fromfunction(lambda i, j: i * 10 + j, (2, 2), dtype=int).tolist()
        [[0, 1], [10, 11]]
    """
    return function(*(indices(shape, dtype) if shape else ()), **kwargs)


def ix_(*args: Any) -> Tuple[Array, ...]:
    """Index arrays of the grid that vectors span: `x[st.ix_(rows, columns)]`.

    Parameters
        args: vectors of integers or bools, of which the true places count.
    Returns
        A tuple of arrays.
    Raises
        ValueError for an array of another number of axes.
    Example
        >>> [one.shape for one in st.ix_([0, 1], [2, 4, 6])]
        [(2, 1), (1, 3)]
    """
    results = []
    for axis, one in enumerate(args):
        if not isinstance(one, Array):
            one = host_array(one)
            one = one.astype(np.int64) if not one.size else one
        one = array_of(one)
        if one.ndim != 1:
            raise ValueError("Cross index must be 1 dimensional")
        if one.dtype.kind == "b":
            (one,) = _routines.nonzero(one)
        results.append(reshape(one, tuple(one.size if i == axis else 1 for i in range(len(args)))))
    return tuple(results)


class _Grid:
    """Grids by slices between brackets, where an imaginary step is a number of elements: `mgrid` gives whole grids,
    `ogrid` one line for each axis.

    Parameters
        sparse: whether there is one line for each axis.
    Example
        >>> st.mgrid[0:2, 0:3].shape
        (2, 2, 3)
        >>> [one.shape for one in st.ogrid[0:2, 0:3]]
        [(2, 1), (1, 3)]
    """

    def __init__(self, sparse: bool):
        self._sparse = sparse

    def __getitem__(self, key: Any):
        if _local.has_places:
            made = _host_functions.grid(np.ogrid if self._sparse else np.mgrid, key)
            if made is not None:
                return made
        if not isinstance(key, tuple):
            return _line(key)
        lines = [_line(one) for one in key]
        kind = _casts.result_type(*lines) if lines else _dtypes.int64
        lines = [one.astype(kind, copy=False) for one in lines]
        rank = len(lines)
        lines = [
            reshape(one, tuple(one.size if i == axis else 1 for i in range(rank))) for axis, one in enumerate(lines)
        ]
        if self._sparse:
            return tuple(lines)
        shape = _inference.broadcast(*(one.shape for one in lines)) if lines else ()
        return _assembly.stack([broadcast_to(one, shape) for one in lines]) if lines else zeros((0,), kind)


def _line(key: Any) -> Array:
    if not isinstance(key, slice):
        raise IndexError(f"a grid is made of slices, not of {type(key).__name__}")
    start, stop = 0 if key.start is None else key.start, key.stop
    step = 1 if key.step is None else key.step
    if stop is None:  # as NumPy's, which takes it for `arange`'s one number
        start, stop = 0, start
    if isinstance(step, (complex, np.complexfloating)):
        return _creation.linspace(start, stop, int(abs(step)))
    return arange(start, stop, step)


mgrid = _Grid(sparse=False)
ogrid = _Grid(sparse=True)


class _Joiner:
    """Joins what stands between brackets along an axis, where slices are ranges: `r_` along the first axis, `c_` as
    columns.

    Parameters
        axis: the axis.
        ndmin: the least number of axes.
        new_axis: where the axes of arrays with fewer axes stand.
    Raises
        ValueError for a directive that is not the first entry.
    Example
        >>> st.r_[1:3, 7].tolist()
        [1, 2, 7]
        >>> st.c_[[1, 2], [3, 4]].tolist()
        [[1, 3], [2, 4]]
    """

    def __init__(self, axis: int, ndmin: int, new_axis: int):
        self._axis, self._ndmin, self._new_axis = axis, ndmin, new_axis

    def __getitem__(self, key: Any) -> Array:
        key = key if isinstance(key, tuple) else (key,)
        axis, ndmin, new_axis = self._axis, self._ndmin, self._new_axis
        parts, scalars = [], []
        for place, one in enumerate(key):
            if isinstance(one, str):
                if place:
                    raise ValueError("special directives must be the first entry.")
                axis, ndmin, new_axis = _directive(one, axis, ndmin, new_axis)
                continue
            if isinstance(one, slice):
                one = _line(one)
            elif isinstance(one, _SCALARS):
                scalars.append(len(parts))
                parts.append(one)
                continue
            parts.append(self._placed(array_of(one), ndmin, new_axis))
        if scalars:
            types = [one if isinstance(one, _SCALARS) else one.dtype for one in parts]
            kind = np.result_type(*types)
            parts = [
                _creation.full((1,) * max(1, ndmin), one, kind) if place in scalars else one
                for place, one in enumerate(parts)
            ]
            return _assembly.concat(parts, axis).astype(kind, copy=False)
        return _assembly.concat(parts, axis)

    @staticmethod
    def _placed(one: Array, ndmin: int, new_axis: int) -> Array:
        missing = ndmin - one.ndim
        rank = one.ndim
        if not rank:
            return reshape(one, (1,) * max(1, ndmin))
        if missing <= 0:
            return one
        # NumPy's: the array's axes begin at `new_axis` among those that it then has.
        begin = new_axis if new_axis >= 0 else new_axis + missing + 1
        return reshape(one, (1,) * begin + one.shape + (1,) * (missing - begin))

    def __len__(self) -> int:
        return 0


def _directive(text: str, axis: int, ndmin: int, new_axis: int) -> Tuple[int, int, int]:
    if text in ("r", "c"):
        raise _arguments.unimplemented(f"r_[{text!r}]", "it makes NumPy's matrix; use a 2-d array")
    try:
        numbers = [int(one) for one in text.split(",")]
        return tuple((numbers + [axis, ndmin, new_axis][len(numbers):])[:3])  # type: ignore[return-value]
    except ValueError:
        raise ValueError(f"unknown special directive {text!r}") from None


r_ = _Joiner(0, 1, -1)
c_ = _Joiner(-1, 2, 0)


def vander(x: Any, N: Optional[int] = None, increasing: bool = False) -> Array:  # noqa: N803
    """The powers of a vector's elements as columns.

    Parameters
        x: an array of one axis.
        N: how many columns; as many as elements where none is given.
        increasing: whether the powers rise from left to right.
    Returns
        An array of two axes.
    Raises
        ValueError for another number of axes.
    Example
        >>> st.vander([2, 3], 3).tolist()
        [[4, 2, 1], [9, 3, 1]]
    """
    array = array_of(x)
    if array.ndim != 1:
        raise ValueError("x must be a one-dimensional array or sequence.")
    count = array.size if N is None else _arguments.count(N, "N")
    kind = _inference.promote(array.dtype, _dtypes.int64)
    columns: List[Array] = []
    for i in range(count):
        columns.append(_creation.ones((array.size,), kind) if not i else columns[-1] * array.astype(kind, copy=False))
    if not columns:
        return zeros((array.size, 0), kind)
    return _assembly.stack(columns if increasing else columns[::-1], 1)
