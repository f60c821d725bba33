"""New arrays."""

import builtins
import functools
import math
import operator
from typing import Optional, Tuple

import numpy as np

from stride import (
    _arguments,
    _cuda_memory,
    _dtypes,
    _elements,
    _errors,
    _graph,
    _host_arrays,
    _inference,
    _interchange,
    _local,
    _manipulation,
)
from stride._array import _SCALARS, Array, array_of, host_array, wrap
from stride._elementwise import equal, greater_equal, logical_and, where
from stride._graph import Number, Prepared, record
from stride._session import Session, current_session
from stride._sharding import Sharding, reshard
from stride.v1 import array_pb2, operation_pb2 as pb

__all__ = [
    "arange",
    "array",
    "asanyarray",
    "asarray",
    "asarray_chkfinite",
    "ascontiguousarray",
    "asfortranarray",
    "copy",
    "empty",
    "empty_like",
    "eye",
    "from_dlpack",
    "full",
    "full_like",
    "identity",
    "linspace",
    "meshgrid",
    "ones",
    "ones_like",
    "require",
    "tri",
    "tril",
    "triu",
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


_PLAIN = frozenset((bool, int, float, complex))  # the types in most lists


def number_as(value, dtype: np.dtype) -> np.generic:
    """Converts a number to a type as NumPy fills an array: Python's integers must fit."""
    if type(value) is float and dtype.kind == "f" or type(value) is int and -128 <= value < 128 and (
        dtype.kind in "ifc" or value >= 0 and dtype.kind == "u"
    ):
        return dtype.type(value)
    return np.full((), value, dtype)[()]


def _session_of(device: Optional[str], like: Optional[Array] = None) -> Session:
    return like._node.session if like is not None else current_session()


def _on(array: Array, device: Optional[str]) -> Array:
    return array if device is None else array.to_device(device)


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
    axes = _manipulation.memory_axes(order, len(shape), like)
    if axes is None:
        return shape, _as_it_is
    back = _manipulation.inverse(axes)
    return tuple([shape[i] for i in axes]), lambda array: _manipulation.permute_dims(array, back)


def _check_memory_order(order: Optional[str], like, orders: Tuple[str, ...] = ("F", "C")) -> None:
    if order != "C":
        _arguments.check_order(order, orders)
    if like is not None and not isinstance(like, Array):
        raise TypeError(f"like= names an array of the service here, not {type(like).__name__}")


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
    if order != "C" and _manipulation.memory_axes(order, len(_shape(shape))) is not None:
        return _manipulation.copied(full(shape, fill_value, dtype, device=device), "F")
    if not isinstance(fill_value, _SCALARS) and not isinstance(fill_value, Array):
        fill_value = asarray(fill_value)
    if isinstance(fill_value, Array):
        target = fill_value if dtype is None else fill_value.astype(dtype)
        return _on(_manipulation.copy(_manipulation.broadcast_to(target, _shape(shape))), device)
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
        axes = _manipulation.memory_axes(order, len(shape), a)
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
        last, (least, greatest) = start + (count - 1) * step, _graph._limits(dtype)
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
        result = _manipulation.concat([result[:-1], last], axis=0)
    if axis != 0:
        result = _manipulation.moveaxis(result, 0, axis)
    if target.kind in "iu":
        result = _elementwise.floor(result)
    return result.astype(target, copy=False), step


def eye(
    N: int,  # noqa: N803, NumPy's names
    M: Optional[int] = None,  # noqa: N803
    k: int = 0,
    dtype=None,
    order: Optional[str] = "C",
    *,
    device: Optional[str] = None,
    like=None,
) -> Array:
    """A matrix with ones on a diagonal and zeros elsewhere.

    Parameters
        N, M: how many rows and columns; as many columns as rows where M is not given.
        k: which diagonal; positive ones are above the main one.
        dtype: the element type, float64 where none is given.
        order: C or F: the order of memory.
        device: where it is; the session's device where none is given.
        like: an array of the service, which changes nothing.
    Returns
        An array of shape (N, M).
    Raises
        ValueError for a negative extent.
    Example
        >>> st.eye(2, 3, 1).tolist()
        [[0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
    """
    _check_memory_order(order, like)
    n_rows = operator.index(N)
    n_cols, k = n_rows if M is None else operator.index(M), operator.index(k)
    if n_rows < 0 or n_cols < 0:
        raise ValueError(f"negative dimensions are not allowed: {(n_rows, n_cols)}")
    k = min(max(k, -n_rows), n_cols)
    rows = _manipulation.expand_dims(arange(n_rows), axis=1)
    columns = arange(-k, n_cols - k)
    made = _on(equal(rows, columns).astype(_dtype_or(dtype, float)), device)
    return made if order == "C" else _manipulation.copied(made, order)


def identity(n: int, dtype=None, *, like=None) -> Array:
    """The identity matrix of n rows.

    Parameters
        n: the number of rows and of columns.
        dtype: the element type, float64 where none is given.
        like: an array of the service, which changes nothing.
    Returns
        An array of shape (N, M).
    Raises
        ValueError for a negative extent.
    Example
        >>> st.identity(2).tolist()
        [[1.0, 0.0], [0.0, 1.0]]
    """
    return eye(n, dtype=dtype, like=like)


def tri(N: int, M: Optional[int] = None, k: int = 0, dtype=float, *, like=None) -> Array:  # noqa: N803
    """A matrix with ones at and below a diagonal and zeros above.

    Parameters
        N: how many rows and columns; as many columns as rows where M is not given.
        M: how many rows and columns; as many columns as rows where M is not given.
        k: which diagonal; positive ones are above the main one.
        dtype: the element type, float64 where none is given.
        like: an array of the service, which changes nothing.
    Returns
        An array of shape (N, M).
    Raises
        ValueError for a negative extent.
    Example
        >>> st.tri(2, 3, 1, int).tolist()
        [[1, 1, 0], [1, 1, 1]]
    """
    return tril(ones((N, N if M is None else M), dtype, like=like), k)


def _triangle(x: Array, k: int, lower: bool) -> Array:
    x, k = array_of(x), operator.index(k)
    if x.ndim == 1:  # NumPy's way with one axis
        x = _manipulation.broadcast_to(x, (x.size, x.size))
    if x.ndim < 2:
        raise _errors.ShapeMismatch("a triangle is of a matrix or a stack of them", reason="SHAPE_MISMATCH")
    num_rows, num_columns = x.shape[-2:]
    k = min(max(k, -num_rows), num_columns)
    dtype = _INT32 if num_rows + num_columns < 2**31 else _INT64
    session = x._node.session
    rows = _integers(session, k, k + num_rows, dtype)[:, None]
    columns = _integers(session, 0, num_columns, dtype)
    keep = greater_equal(rows, columns) if lower else greater_equal(columns, rows)
    return logical_and(keep, x) if x.dtype.kind == "b" else where(keep, x, 0)


def tril(m, k: int = 0) -> Array:
    """The elements at and below a diagonal, with zeros above.

    Parameters
        m: a matrix or a stack of them; one axis is taken for a row, as by NumPy.
        k: which diagonal; positive ones are above the main one.
    Returns
        An array of `m`'s type and shape.
    Raises
        ShapeMismatch for an array without axes.
    Example
        >>> st.tril(st.ones((2, 2))).tolist()
        [[1.0, 0.0], [1.0, 1.0]]
    """
    return _triangle(m, k, True)


def triu(m, k: int = 0) -> Array:
    """The elements at and above a diagonal, with zeros below.

    Parameters
        m: a matrix or a stack of them; one axis is taken for a row, as by NumPy.
        k: which diagonal; positive ones are above the main one.
    Returns
        An array of `m`'s type and shape.
    Raises
        ShapeMismatch for an array without axes.
    Example
        >>> st.triu(st.ones((2, 2))).tolist()
        [[1.0, 1.0], [0.0, 1.0]]
    """
    return _triangle(m, k, False)


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
        results.append(_manipulation.copy(column) if copy else column)
    return tuple(results)


def asarray(
    a,
    dtype=None,
    order: Optional[str] = None,
    *,
    device: Optional[str] = None,
    copy: Optional[bool] = None,
    like=None,
    progress=None,
    sharding: Optional[Sharding] = None,
) -> Array:
    """An array of any value that NumPy or DLPack can convert. An array is returned as it is unless another
    type, another device or a copy is requested.

    Parameters
        a: an array, a number, nested sequences, or an object with DLPack's or CUDA's interface.
        dtype: the element type, that of `a` where none is given.
        order: C or F, the order of memory; A or K, that of an array of the service where it is C or F.
        device, sharding: where it is, and how it is spread.
        copy: True for a copy in any case, False for an error where one is needed.
        like: an array of the service, which changes nothing.
        progress: is called with (done_bytes, total_bytes) while a large array is sent.
    Returns
        An array.
    Raises
        ValueError where `copy` is False and one is needed; DataTypeMismatch for elements that the service does not
        have.
    Example
        >>> st.asarray([[1, 2], [3, 4]], st.float32).shape
        (2, 2)
    """
    _check_memory_order(order, like, _arguments.ORDERS)
    if not isinstance(a, Array) and order is not None and order.upper() == "F":
        made = asarray(a, dtype, device=device, copy=copy, like=like, progress=progress, sharding=sharding)
        return made if made.ndim < 2 else asfortranarray(made)
    if isinstance(a, Array):
        if dtype is not None and _dtypes.dtype_of(dtype) != a.dtype:
            if copy is False:
                raise ValueError("another type needs a copy")
            # Without C or F as it lies, as NumPy has it.
            kept = "K" if order is None or order.upper() == "A" else order
            a = _manipulation.copied(a, kept, _dtypes.dtype_of(dtype))
        elif copy or _manipulation.lies_otherwise(a, order):
            if copy is False:
                raise ValueError("another order of memory needs a copy")
            a = _manipulation.copied(a, order)
        return _on(a, device) if sharding is None else reshard(a, sharding)
    if copy is False:
        raise ValueError("elements on the host must be copied to a device")
    dtype, is_local = None if dtype is None else _dtypes.dtype_of(dtype), False
    if isinstance(a, (list, tuple)):
        if _PLAIN.issuperset(map(type, a)):
            a = np.asarray(a, dtype)
            return wrap(current_session()._upload(a, device, progress, sharding))
        if has_arrays_to_compute(a):
            joined = joined_sequence(a)
            joined = joined if dtype is None else joined.astype(dtype, copy=False)
            return asarray(joined, device=device, sharding=sharding)
        is_local = _has_locals(a)
        a = from_sequence(a, dtype)
    elif not isinstance(a, np.ndarray):
        a = (
            _from_other(a)
            if dtype is None or hasattr(a, "__array__") or hasattr(a, "__dlpack__")
            else np.asarray(a, dtype)
        )
    a = host_array(a)
    if dtype is not None:
        a = a.astype(dtype, copy=False)
    node = current_session()._upload(a, device, progress, sharding)
    if is_local and node.host is not None:
        node.own_buffer().is_local = True
    return wrap(node)


def array(
    object,  # noqa: A002, NumPy's name
    dtype=None,
    *,
    copy: Optional[bool] = True,
    order: Optional[str] = "K",
    subok: bool = False,
    ndmin: int = 0,
    ndmax: int = 0,
    like=None,
    device: Optional[str] = None,
) -> Array:
    """A new array of any value that NumPy can convert.

    Parameters
        object: an array, a number or nested sequences; arrays of the service in them are joined on the device.
        dtype: the element type, that of `object` where none is given.
        copy: False and None share an array of the service, False with an error where that is not possible.
        order: C or F, the order of memory; A or K, that of an array of the service where it is C or F.
        subok: must be False, since the service's arrays have no subclasses.
        ndmin: how many axes there are at least; missing ones are put in front.
        ndmax, like: accepted for NumPy's sake; nested sequences are taken apart to the end.
        device: where it is.
    Returns
        An array.
    Raises
        Unimplemented for `subok`; DataTypeMismatch for elements that the service does not have, such as strings.
    Example
        >>> st.array([1, 2, 3], ndmin=2).shape
        (1, 3)
    """
    from stride import _arguments

    _arguments.refuse_subok(subok)
    if isinstance(object, Array):
        result = asarray(object, dtype, order, device=device, copy=copy, like=like)
        if not result.ndim and result is not object:
            result._node.strides = ()  # an array, also where a number was given
    elif copy is False and not isinstance(object, _SCALARS):
        raise ValueError("elements on the host must be copied to a device")
    else:
        result = asarray(object, dtype, order, device=device, like=like)
    missing = operator.index(ndmin) - result.ndim
    return result if missing <= 0 else _manipulation.reshape(result, (1,) * missing + result.shape)


def asanyarray(
    a, dtype=None, order: Optional[str] = None, *, device: Optional[str] = None, copy: Optional[bool] = None, like=None
) -> Array:
    """An array of the service with the elements of `a`; `a` itself if it is one.

    Parameters
        a: an array, or what becomes one.
        dtype: the element type, that of `obj` where none is given.
        order: C or F, the order of memory; A or K, that of an array of the service where it is C or F.
        device: where it is, and how it is spread.
        copy: True for a copy in any case, False for an error where one is needed.
        like: an array of the service, which changes nothing.
    Returns
        An array.
    Raises
        ValueError where `copy` is False and one is needed; DataTypeMismatch for elements that the service does not
        have.
    Example
        >>> st.asanyarray((1, 2)).tolist()
        [1, 2]
    """
    return asarray(a, dtype, order, device=device, copy=copy, like=like)


def ascontiguousarray(a, dtype=None, *, like=None) -> Array:
    """An array whose elements lie in C order without gaps, of one axis at least; a copy where `a`'s do not.

    Parameters
        a: what `asarray` takes.
        dtype: the element type.
        like: an array of the service, which changes nothing.
    Returns
        An array.
    Raises
        DataTypeMismatch for elements that the service does not have.
    Example
        >>> st.ascontiguousarray(st.ones((2, 3)).T).flags.c_contiguous
        True
    """
    result = asarray(a, dtype, like=like)
    if not result.flags.c_contiguous:
        result = _manipulation.copy(result)
    return result if result.ndim else _manipulation.reshape(result, (1,))


def asfortranarray(a, dtype=None, *, like=None) -> Array:
    """An array whose elements lie in Fortran's order without gaps; a copy where `a`'s do not.

    Parameters
        a: what `asarray` takes.
        dtype: the element type.
        like: an array of the service, which changes nothing.
    Returns
        An array.
    Raises
        DataTypeMismatch for elements that the service does not have.
    Example
        >>> st.asfortranarray(st.ones((2, 3))).flags.f_contiguous
        True
    """
    result = asarray(a, dtype, like=like)
    if not result.ndim:
        return _manipulation.reshape(result, (1,))
    if result.flags.f_contiguous:
        return result
    turned = _manipulation.permute_dims(result, range(result.ndim - 1, -1, -1))
    return _manipulation.permute_dims(_manipulation.copy(turned), range(result.ndim - 1, -1, -1))


def asarray_chkfinite(a, dtype=None, order: Optional[str] = None) -> Array:
    """An array of the service, after a check that every element is finite: one round trip.

    Parameters
        a: an array, or what becomes one.
        dtype: the element type, that of `obj` where none is given.
        order: C or F, the order of memory; A or K, that of an array of the service where it is C or F.
    Returns
        An array.
    Raises
        ValueError for an element that is infinite or NaN.
    Example
        >>> st.asarray_chkfinite([1.0, 2.0]).tolist()
        [1.0, 2.0]
    """
    from stride import _elementwise, _reductions

    result = asarray(a, dtype, order)
    if result.dtype.kind in "fc" and not bool(_reductions.all(_elementwise.isfinite(result))):
        raise ValueError("array must not contain infs or NaNs")
    return result


def copy(a, order: Optional[str] = "K", subok: bool = False) -> Array:
    """A copy, which shares no elements.

    Parameters
        a: an array.
        order: C or F, the order of memory; A or K, that of an array of the service where it is C or F.
        subok: must be False.
    Returns
        An array of `a`'s shape and type.
    Raises
        Unimplemented for `subok`.
    Example
        >>> st.copy(st.arange(3)).tolist()
        [0, 1, 2]
    """
    from stride import _arguments

    _arguments.refuse_subok(subok)
    return _manipulation.copied(array_of(a), _arguments.check_order(order))


def require(a, dtype=None, requirements=None, *, like=None) -> Array:
    """An array with NumPy's requirements, which are C_CONTIGUOUS, F_CONTIGUOUS, OWNDATA, WRITEABLE and their short
    names; a copy where `a` does not meet them.

    Parameters
        a: an array, or what becomes one.
        dtype: the element type, that of `obj` where none is given.
        requirements: a name or a sequence of names.
        like: an array of the service, which changes nothing.
    Returns
        An array.
    Raises
        ValueError for another name, and where both orders are required.
    Example
        >>> st.require(st.ones((2, 3)).T, requirements="C").flags.c_contiguous
        True
    """
    names = {
        "C": "C", "C_CONTIGUOUS": "C", "CONTIGUOUS": "C", "F": "F", "F_CONTIGUOUS": "F", "FORTRAN": "F",
        "A": "A", "ALIGNED": "A", "W": "W", "WRITEABLE": "W", "O": "O", "OWNDATA": "O", "E": "E", "ENSUREARRAY": "E",
    }
    wanted = set()
    for one in [requirements] if isinstance(requirements, str) else requirements or ():
        if one.upper() not in names:
            raise ValueError(f"requirements are {', '.join(sorted(names))}, not {one!r}")
        wanted.add(names[one.upper()])
    if {"C", "F"} <= wanted:
        raise ValueError('Cannot specify both "C" and "F" order')
    result = asarray(a, dtype, like=like)
    result = ascontiguousarray(result) if "C" in wanted and result.ndim else result
    result = asfortranarray(result) if "F" in wanted and result.ndim else result
    must_copy = "O" in wanted and not result.flags.owndata or "W" in wanted and not result.flags.writeable
    return _manipulation.copy(result) if must_copy else result


def has_arrays_to_compute(obj) -> bool:
    """Whether sequences hold an array whose elements the host does not have."""
    if isinstance(obj, Array):
        return _host_arrays.values_of(obj) is None and obj._node.cached() is None
    return isinstance(obj, (list, tuple)) and any(map(has_arrays_to_compute, obj))


def _has_locals(obj) -> bool:
    """Whether sequences hold an element or an array of a loop of the host (`_local.py`)."""
    if isinstance(obj, (list, tuple)):
        return any(map(_has_locals, obj))
    return type(obj) is _elements.Element or type(obj) in _local.classes


def joined_sequence(obj) -> Array:
    """Nested sequences with arrays in them as one array, without reading these."""
    if isinstance(obj, Array):
        return obj
    if isinstance(obj, (list, tuple)) and any(isinstance(one, (Array, list, tuple)) for one in obj):
        parts = [joined_sequence(one) for one in obj]
        if any(part.shape != parts[0].shape for part in parts):
            raise ValueError(
                "sequences of different shapes make no array: " + ", ".join(str(part.shape) for part in parts)
            )
        return _manipulation.stack(parts)
    return wrap(current_session()._upload(host_array(obj)))


def from_sequence(obj, dtype: Optional[np.dtype] = None) -> np.ndarray:
    """Converts lists and tuples with any elements. Arrays of the service among them are read."""
    return np.asarray(without_arrays(obj), dtype)


def without_arrays(obj):
    """Replaces arrays in lists by lists of their elements; masked arrays are refused."""
    if isinstance(obj, Array):
        return obj._read() if obj.ndim else obj._read()[()]
    if isinstance(obj, np.ma.MaskedArray):
        return host_array(obj)
    return [without_arrays(inner) for inner in obj] if isinstance(obj, (list, tuple)) else obj


def _from_other(obj) -> np.ndarray:
    interface = getattr(obj, "__cuda_array_interface__", None)
    if interface is not None:
        return _cuda_memory.read(interface)
    if not hasattr(obj, "__dlpack__"):
        return host_array(obj)
    if not hasattr(obj, "__array__"):
        return _interchange.read(obj)
    try:
        return host_array(obj)
    except TypeError:  # PyTorch's bfloat16, and memory of a GPU
        return _interchange.read(obj)


def from_dlpack(x, /, *, device: Optional[str] = None, copy: Optional[bool] = None) -> Array:
    """A copy on the service of an array of another library.

    Parameters
        x: an object with `__dlpack__`, in the host's memory or a GPU's of this machine, or a capsule.
        device: where the copy is.
        copy: True or None; False is an error, since elements are copied to the service.
    Returns
        An array.
    Raises
        BufferError for `copy=False` and for memory that cannot be read here; DataTypeMismatch for elements that the
        service does not have; TypeError for another object.
    Example
        >>> st.from_dlpack(st.asnumpy(st.arange(2))).tolist()
        [0, 1]
    """
    if isinstance(x, Array):
        return asarray(x, device=device, copy=copy)
    if copy is False:
        raise BufferError("elements on the host must be copied to a device")
    return asarray(_interchange.read(x), device=device)
