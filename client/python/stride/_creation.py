"""New arrays of a shape: filled with one number, counted or spaced; and grids of coordinates."""

import builtins
import functools
import math
import operator
from typing import Optional, Tuple

import numpy as np

from stride import _assembly, _casts, _dtypes, _errors, _inference, _manipulation, _numbers
from stride._array import _SCALARS, Array, array_of, host_array, wrap
from stride._elementwise import equal, where
from stride._graph import Prepared, record
from stride._numbers import Number
from stride._session import Session, current_session
from stride.v1 import array_pb2, operation_pb2 as pb
from stride import _conversion
from stride._conversion import _check_memory_order, _on

__all__ = [
    "arange",
    "empty",
    "empty_like",
    "full",
    "full_like",
    "linspace",
    "meshgrid",
    "ones",
    "ones_like",
    "zeros",
    "zeros_like",
]

_INT32, _INT64 = np.dtype(np.int32), np.dtype(np.int64)
_MOST_INTEGER = 2**62


def _shape(shape) -> tuple:
    shape = _manipulation._extents(shape)
    if shape and builtins.min(shape) < 0:
        raise ValueError(f"negative dimensions are not allowed: {shape}")
    # NumPy refuses such extents even where another one is 0.
    if math.prod(extent or 1 for extent in shape) >= 2**63:
        raise ValueError(f"an array of the shape {shape} has more elements than 63 bits count")
    return shape


def number_of(value, name: str):
    """A bound or a step: a number, or an array without axes, such as reductions give."""
    if isinstance(value, (Array, np.ndarray)):
        if value.ndim:
            raise _errors.Unimplemented(
                f"{name} is a number or an array without axes here, not an array of shape {value.shape}",
                reason="NOT_IMPLEMENTED",
                metadata={"feature": name},
            )
        return host_array(value)[()]
    if not isinstance(value, _SCALARS):
        raise TypeError(f"{name} is a number, not {type(value).__name__}")
    return value


def number_as(value, dtype: np.dtype) -> np.generic:
    """Converts a number to a type as NumPy fills an array: Python's integers must fit."""
    if type(value) is float and dtype.kind == "f" or type(value) is int and -128 <= value < 128 and (
        dtype.kind in "ifc" or value >= 0 and dtype.kind == "u"
    ):
        return dtype.type(value)
    return np.full((), value, dtype)[()]


def _session_of(device: Optional[str], like: Optional[Array] = None) -> Session:
    return like._node.session if like is not None else current_session()


def _create(session, shape, dtype, **kind) -> Array:
    def build(flush, node, operands):
        flush.operation(node.handle, node.origin, creation=pb.Creation(**kind))

    return _created(session, shape, dtype, build)


def _created(session, shape, dtype, build) -> Array:
    made = record(session, shape, dtype, build, ())
    if not made.shape:
        made.strides = ()  # as in Session._upload
    return wrap(made)


def _fill(session, shape, dtype, value) -> Array:
    data_type = _dtypes.NUMBERS[dtype]

    def build(flush, node, operands):
        spec = array_pb2.ArraySpec(data_type=data_type, shape=shape)
        number = None if value is None else Number(value).to_proto()
        flush.operation(
            node.handle, node.origin, creation=pb.Creation(fill=pb.Creation.Fill(spec=spec, value=number))
        )

    return _created(session, shape, dtype, build)


def full_in(session: Session, shape, value, dtype: np.dtype) -> Array:
    return _fill(session, _shape(shape), dtype, number_as(value, dtype))


def _dtype_or(dtype, default) -> np.dtype:
    return _dtypes.dtype_of(default if dtype is None else dtype)


def _as_it_is(array: Array) -> Array:
    return array


def _turned(shape: tuple, order: Optional[str], like: Optional[Array] = None) -> tuple:
    """For a new array of the shape in a memory order: the shape to make it in, and what makes the array of that."""
    axes = _casts.memory_axes(order, len(shape), like)
    if axes is None:
        return shape, _as_it_is
    back = _casts.inverse(axes)
    return tuple([shape[i] for i in axes]), lambda array: _manipulation.permute_dims(array, back)


def zeros(shape, dtype=None, order: Optional[str] = "C", *, device: Optional[str] = None, like=None) -> Array:
    """An array of zeros.

    Parameters
        shape: an integer or a sequence of them.
        dtype: the element type, float64 where none is given.
        order: C or F: the order of memory.
        device: where it is; the session's device where none is given.
        like: an array of the service, which changes nothing.
    Returns
        An array of the shape and type.
    Raises
        ValueError for a negative extent; DataTypeMismatch for a type that the service does not have.
    Example
        >>> st.zeros((2, 2), st.int32).tolist()
        [[0, 0], [0, 0]]
    """
    _check_memory_order(order, like)
    shape, made = _turned(_shape(shape), order)
    return made(_on(_fill(_session_of(device), shape, _dtype_or(dtype, float), None), device))


# Earlier content of the memory must not be visible.
empty = zeros


def ones(shape, dtype=None, order: Optional[str] = "C", *, device: Optional[str] = None, like=None) -> Array:
    """An array of ones.

    Parameters
        shape: an integer or a sequence of them.
        dtype: the element type, float64 where none is given.
        order: C or F: the order of memory.
        device: where it is; the session's device where none is given.
        like: an array of the service, which changes nothing.
    Returns
        An array of the shape and type.
    Raises
        ValueError for a negative extent; DataTypeMismatch for a type that the service does not have.
    Example
        >>> st.ones(2).tolist()
        [1.0, 1.0]
    """
    return full(shape, 1, _dtype_or(dtype, float), order, device=device, like=like)


def full(
    shape, fill_value, dtype=None, order: Optional[str] = "C", *, device: Optional[str] = None, like=None
) -> Array:
    """An array of one value.

    Parameters
        shape: an integer or a sequence of them.
        fill_value: a number, which must fit, or what broadcasts to the shape.
        dtype: the element type, the value's where none is given.
        order: C or F: the order of memory.
        device: where it is; the session's device where none is given.
        like: an array of the service, which changes nothing.
    Returns
        An array of the shape and type.
    Raises
        OverflowError for an integer that does not fit; ValueError for a negative extent.
    Example
        >>> st.full((2,), 7).tolist()
        [7, 7]
    """
    _check_memory_order(order, like)
    if order != "C" and _casts.memory_axes(order, len(_shape(shape))) is not None:
        return _manipulation.copied(full(shape, fill_value, dtype, device=device), "F")
    if not isinstance(fill_value, _SCALARS) and not isinstance(fill_value, Array):
        fill_value = _conversion.asarray(fill_value)
    if isinstance(fill_value, Array):
        target = fill_value if dtype is None else fill_value.astype(dtype)
        return _on(_casts.copy(_manipulation.broadcast_to(target, _shape(shape))), device)
    dtype = _dtypes.dtype_of(np.asarray(fill_value).dtype if dtype is None else dtype)
    return _on(full_in(_session_of(device), shape, fill_value, dtype), device)


def _like(a, order, subok, shape) -> Tuple[Array, tuple]:
    from stride import _arguments

    _arguments.check_order(order)
    # NumPy's default is True, which means nothing where there are no subclasses.
    a = array_of(a)
    return a, a.shape if shape is None else _shape(shape)


def zeros_like(
    a, dtype=None, order: Optional[str] = "K", subok: bool = True, shape=None, *, device: Optional[str] = None
) -> Array:
    """An array of zeros with another's shape and type.

    Parameters
        a: the array.
        dtype, shape: what is to differ.
        order, subok: changes nothing, since the service has no subclasses.
        device: where it is.
    Returns
        An array.
    Raises
        DataTypeMismatch for a type that the service does not have.
    Example
        >>> st.zeros_like(st.array([1, 2])).tolist()
        [0, 0]
    """
    a, shape = _like(a, order, subok, shape)
    shape, made = _turned(shape, order, a)
    return made(_on(_fill(_session_of(device, a), shape, _dtype_or(dtype, a.dtype), None), device))


empty_like = zeros_like


def ones_like(
    a, dtype=None, order: Optional[str] = "K", subok: bool = True, shape=None, *, device: Optional[str] = None
) -> Array:
    """An array of ones with another's shape and type.

    Parameters
        a: the array whose shape and type the result has.
        dtype: what is to differ.
        order: the order of memory: C, F, or A and K, that of `a` where it is C or F.
        subok: changes nothing, since the service has no subclasses.
        shape: what is to differ.
        device: where it is.
    Returns
        An array.
    Raises
        DataTypeMismatch for a type that the service does not have.
    Example
        >>> st.ones_like(st.array([1.5, 2.5])).tolist()
        [1.0, 1.0]
    """
    return full_like(a, 1, dtype, order, subok, shape, device=device)


def full_like(
    a,
    fill_value,
    dtype=None,
    order: Optional[str] = "K",
    subok: bool = True,
    shape=None,
    *,
    device: Optional[str] = None,
) -> Array:
    """An array of one value with another's shape and type.

    Parameters
        a: the array whose shape and type the result has.
        fill_value: the number, or an array that broadcasts to the shape.
        dtype: what is to differ.
        order: the order of memory: C, F, or A and K, that of `a` where it is C or F.
        subok: changes nothing, since the service has no subclasses.
        shape: what is to differ.
        device: where it is.
    Returns
        An array.
    Raises
        DataTypeMismatch for a type that the service does not have.
    Example
        >>> st.full_like(st.array([1, 2]), 5).tolist()
        [5, 5]
    """
    a, shape = _like(a, order, subok, shape)
    dtype = _dtype_or(dtype, a.dtype)
    if not isinstance(fill_value, _SCALARS):
        axes = _casts.memory_axes(order, len(shape), a)
        made = full(shape, fill_value, dtype=dtype, device=device)
        return made if axes is None else _manipulation.laid_out(made, axes)
    shape, made = _turned(shape, order, a)
    return made(_on(full_in(_session_of(device, a), shape, fill_value, dtype), device))


@functools.lru_cache(maxsize=256)
def _range(start: int, stop: int, data_type: int) -> Prepared:
    integers = pb.Creation.Range(data_type=data_type)
    integers.start.int_value, integers.stop.int_value = start, stop
    return Prepared(pb.Operation(creation=pb.Creation(range=integers)), "creation", ())


def _integers(session: Session, start: int, stop: int, dtype: np.dtype) -> Array:
    """The integers of [start, stop), which `dtype` has all."""
    made = _range(start, stop, _dtypes.NUMBERS[dtype])
    return wrap(record(session, (max(stop - start, 0),), dtype, made, ()))


def arange(start, /, stop=None, step=1, dtype=None, *, device: Optional[str] = None, like=None) -> Array:
    """Numbers at equal distances from `start` up to `stop`, which is not among them.

    Parameters
        start: a number, or, where it is given alone, the stop of a range from 0.
        stop, step: numbers; a negative step counts down.
        dtype: the element type; by default what the numbers have together.
        device: where it is; the session's device where none is given.
        like: an array of the service, which changes nothing.
    Returns
        An array of one axis.
    Raises
        ZeroDivisionError for a step of 0; TypeError for what is no number.
    Example
        >>> st.arange(1, 7, 2).tolist()
        [1, 3, 5]
    """
    if type(start) is type(step) is int and step == 1 and dtype is None and (stop is None or type(stop) is int):
        begin, end = (0, start) if stop is None else (start, stop)
        if -_MOST_INTEGER <= begin <= _MOST_INTEGER and -_MOST_INTEGER <= end <= _MOST_INTEGER:
            return _on(_integers(_session_of(device), begin, end, _INT64), device)
    start, step = number_of(start, "arange's start"), number_of(1 if step is None else step, "arange's step")
    if stop is None:
        start, stop = 0, start
    stop = number_of(stop, "arange's stop")
    if step == 0:
        raise ZeroDivisionError("the step of a range must not be zero")
    if dtype is None:
        if type(start) is int and type(stop) is int and type(step) is int:
            largest = max(abs(start), abs(stop), abs(step))
            dtype = np.dtype(np.int64) if largest < 2**63 else np.result_type(*map(np.asarray, (start, stop, step)))
        else:
            dtype = np.result_type(*(np.asarray(one).dtype for one in (start, stop, step)))
            dtype = np.dtype(np.int64) if dtype.kind == "b" else dtype
    dtype = _dtypes.dtype_of(dtype)
    if dtype.kind == "c":
        real = _dtypes.float32 if dtype == _dtypes.complex64 else _dtypes.float64
        if not any(np.iscomplexobj(one) for one in (start, stop, step)):
            return arange(start, stop, step, real, device=device).astype(dtype)
        raise _errors.Unimplemented("a range of complex numbers is not there; make one of real numbers and multiply it",
                                    reason="NOT_IMPLEMENTED", metadata={"feature": "arange of complex numbers"})
    start, stop, step = (one.item() if isinstance(one, np.generic) else one for one in (start, stop, step))
    count = (
        max(0, math.ceil((stop - start) / step))
        if not all(isinstance(one, int) for one in (start, stop, step))
        else len(range(start, stop, step))
    )
    if dtype.kind in "iu":  # as NumPy, which computes the first two and continues from them
        for one in (start, start + step)[:count]:
            number_as(one, dtype)
    if dtype.kind in "iu" and count:
        last, (least, greatest) = start + (count - 1) * step, _numbers._limits(dtype)
        if not (least <= last <= greatest and least <= stop <= greatest):  # it wraps, as NumPy's
            return arange(start, stop, step, np.int64, device=device).astype(dtype)
    if dtype.kind in "cb":  # the service's ranges are of integers and floats
        if dtype.kind == "b" and count > 2:
            raise TypeError("arange() is only supported for booleans when the result has at most length 2.")
        real = np.dtype(np.float32 if dtype == np.complex64 else np.float64)
        return arange(start, stop, step, real, device=device).astype(dtype)
    message = pb.Creation.Range(data_type=_dtypes.NUMBERS[dtype])
    for name, value in (("start", start), ("stop", stop), ("step", step)):
        getattr(message, name).CopyFrom(Number(value).to_proto())
    return _on(_create(_session_of(device), (count,), dtype, range=message), device)


def linspace(
    start,
    stop,
    num: int = 50,
    endpoint: bool = True,
    retstep: bool = False,
    dtype=None,
    axis: int = 0,
    *,
    device: Optional[str] = None,
):
    """`num` numbers at equal distances from `start` to `stop`.

    Parameters
        start, stop: numbers, or arrays that broadcast, between whose elements it then goes along a new axis.
        num: how many.
        endpoint: whether `stop` is the last.
        retstep: whether the distance is returned as well.
        dtype: the element type; float64, or complex128 for complex numbers, where none is given.
        axis: where the new axis is.
        device: where the array is.
    Returns
        An array, or with `retstep` the array and the distance.
    Raises
        ValueError for a negative `num`; AxisError for an axis that the result lacks.
    Example
        >>> st.linspace(0, 1, 5).tolist()
        [0.0, 0.25, 0.5, 0.75, 1.0]
    """
    num = operator.index(num)
    if num < 0:
        raise ValueError(f"the number of samples must not be negative: {num}")
    has_arrays = any(not isinstance(one, _SCALARS) and np.ndim(one) for one in (start, stop))
    if has_arrays:
        result, step = _spaced_between(start, stop, num, endpoint, dtype, axis)
        return (_on(result, device), step) if retstep else _on(result, device)
    start, stop = number_of(start, "linspace's start"), number_of(stop, "linspace's stop")
    axis = _inference.normal_axis(axis, 1)
    is_complex = any(isinstance(one, (complex, np.complexfloating)) for one in (start, stop))
    # Python's numbers are weak: with a float32 the result is float32.
    dtype = _dtype_or(dtype, _inference.promote(np.result_type(start, stop), float))
    message = pb.Creation.LinearSpace(count=num, exclude_endpoint=not endpoint, data_type=_dtypes.NUMBERS[dtype])
    message.start.CopyFrom(Number(start).to_proto())
    message.stop.CopyFrom(Number(stop).to_proto())
    result = _on(_create(_session_of(device), (num,), dtype, linear_space=message), device)
    if not retstep:
        return result
    intervals = num - 1 if endpoint else num
    if intervals <= 0:
        return result, np.nan
    return result, (np.complex128(stop) - start if is_complex else np.float64(stop) - start) / intervals


def _spaced_between(start, stop, num: int, endpoint: bool, dtype, axis: int):
    """linspace between the elements of arrays, as NumPy computes it: by the step, or where one is 0 by the share."""
    from stride import _arguments, _elementwise, _reductions

    types = [one if isinstance(one, _SCALARS) else array_of(one).dtype for one in (start, stop)]
    kind = _inference.promote(np.result_type(*types), float)
    start, stop = _arguments.arrays(*(one if isinstance(one, Array) else host_array(one) for one in (start, stop)))
    target = kind if dtype is None else _dtypes.dtype_of(dtype)
    start, stop = start.astype(kind, copy=False), stop.astype(kind, copy=False)
    distance = stop - start
    places = _manipulation.reshape(arange(num).astype(kind), (num,) + (1,) * distance.ndim)
    intervals = num - 1 if endpoint else num
    if intervals > 0:
        step = distance / intervals
        by_share = places / intervals * distance
        result = where(_reductions.any(equal(step, 0)), by_share, places * step)
    else:
        step = full_in(distance.session, distance.shape, float("nan"), kind)
        result = places * distance
    result = result + start
    if endpoint and num > 1:
        last = _manipulation.expand_dims(_manipulation.broadcast_to(stop, distance.shape), axis=0)
        result = _assembly.concat([result[:-1], last], axis=0)
    if axis != 0:
        result = _manipulation.moveaxis(result, 0, axis)
    if target.kind in "iu":
        result = _elementwise.floor(result)
    return result.astype(target, copy=False), step


def meshgrid(*xi, copy: bool = True, sparse: bool = False, indexing: str = "xy") -> Tuple[Array, ...]:
    """Coordinates of a grid: for each of the vectors an array with its element of every point.

    Parameters
        xi: vectors; other arrays are taken in C order.
        copy: False gives views for reading where there are some.
        sparse: whether each array has one element along the others' axes.
        indexing: xy for columns first, as pictures have it, or ij.
    Returns
        A tuple of as many arrays.
    Raises
        ValueError for another indexing.
    Example
        >>> [one.tolist() for one in st.meshgrid(st.arange(2), st.arange(2), indexing="ij")]
        [[[0, 0], [1, 1]], [[0, 1], [0, 1]]]
    """
    if indexing not in ("xy", "ij"):
        raise ValueError(f"indexing is xy or ij, not {indexing}")
    if not xi:
        return ()
    arrays = tuple(map(array_of, xi))
    arrays = tuple(array if array.ndim == 1 else _manipulation.reshape(array, (array.size,)) for array in arrays)
    rank = len(arrays)
    places = list(range(rank))
    if indexing == "xy" and rank > 1:
        places[:2] = 1, 0
    shape = [0] * rank
    for array, place in zip(arrays, places):
        shape[place] = array.size
    results = []
    for array, place in zip(arrays, places):
        column = _manipulation.reshape(array, tuple(array.size if i == place else 1 for i in range(rank)))
        column = column if sparse else _manipulation.broadcast_to(column, tuple(shape))
        results.append(_casts.copy(column) if copy else column)
    return tuple(results)
