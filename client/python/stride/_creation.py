"""New arrays."""

import math
import operator
from typing import Optional, Tuple

import numpy as np

from stride import _cuda_memory, _dtypes, _errors, _manipulation
from stride._array import _SCALARS, Array, array_of, host_array, wrap
from stride._elementwise import equal, greater_equal, where
from stride._graph import Number, record
from stride._session import Session, current_session
from stride._sharding import Sharding, reshard
from stride.v1 import array_pb2, operation_pb2 as pb

__all__ = ["arange", "asarray", "empty", "empty_like", "eye", "from_dlpack", "full", "full_like", "linspace", "meshgrid", "ones", "ones_like",
           "tril", "triu", "zeros", "zeros_like"]


def _shape(shape) -> tuple:
    if hasattr(shape, "__index__") and np.ndim(shape) == 0:
        shape = (shape,)
    shape = tuple(operator.index(extent) for extent in shape)
    if any(extent < 0 for extent in shape):
        raise ValueError(f"negative dimensions are not allowed: {shape}")
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
    return np.full((), value, dtype)[()]


def _session_of(device: Optional[str], like: Optional[Array] = None) -> Session:
    return like._node.session if like is not None else current_session()


def _on(array: Array, device: Optional[str]) -> Array:
    return array if device is None else array.to_device(device)


def _create(session, shape, dtype, **kind) -> Array:
    def build(flush, node, operands):
        flush.operation(node.handle, node.origin, creation=pb.Creation(**kind))

    return wrap(record(session, shape, dtype, build, ()))


def _fill(session, shape, dtype, value) -> Array:
    fill = pb.Creation.Fill(spec=array_pb2.ArraySpec(data_type=_dtypes.NUMBERS[dtype], shape=shape))
    if value is not None:
        fill.value.CopyFrom(Number(value).to_proto())
    return _create(session, shape, dtype, fill=fill)


def full_in(session: Session, shape, value, dtype: np.dtype) -> Array:
    return _fill(session, _shape(shape), dtype, number_as(value, dtype))


def _dtype_or(dtype, default) -> np.dtype:
    return _dtypes.dtype_of(default if dtype is None else dtype)


def zeros(shape, *, dtype=None, device: Optional[str] = None) -> Array:
    return _on(_fill(_session_of(device), _shape(shape), _dtype_or(dtype, float), None), device)


# Nothing of what was in memory before may be seen.
empty = zeros


def ones(shape, *, dtype=None, device: Optional[str] = None) -> Array:
    return full(shape, 1, dtype=_dtype_or(dtype, float), device=device)


def full(shape, fill_value, *, dtype=None, device: Optional[str] = None) -> Array:
    """`fill_value` is a number, which must fit, or an array-like that broadcasts to the shape."""
    if not isinstance(fill_value, (Array, *_SCALARS)):
        fill_value = asarray(fill_value)
    if isinstance(fill_value, Array):
        target = fill_value if dtype is None else fill_value.astype(dtype)
        return _on(_manipulation.copy(_manipulation.broadcast_to(target, _shape(shape))), device)
    return _on(full_in(_session_of(device), shape, fill_value, _dtype_or(dtype, np.asarray(fill_value).dtype)), device)


def zeros_like(x, /, *, dtype=None, device: Optional[str] = None) -> Array:
    x = array_of(x)
    return _on(_fill(_session_of(device, x), x.shape, _dtype_or(dtype, x.dtype), None), device)


empty_like = zeros_like


def ones_like(x, /, *, dtype=None, device: Optional[str] = None) -> Array:
    return full_like(x, 1, dtype=dtype, device=device)


def full_like(x, /, fill_value, *, dtype=None, device: Optional[str] = None) -> Array:
    x = array_of(x)
    dtype = _dtype_or(dtype, x.dtype)
    if not isinstance(fill_value, _SCALARS):
        return full(x.shape, fill_value, dtype=dtype, device=device)
    return _on(full_in(_session_of(device, x), x.shape, fill_value, dtype), device)


def arange(start, /, stop=None, step=1, *, dtype=None, device: Optional[str] = None) -> Array:
    """NumPy's arange."""
    start, step = number_of(start, "arange's start"), number_of(1 if step is None else step, "arange's step")
    if stop is None:
        start, stop = 0, start
    stop = number_of(stop, "arange's stop")
    if step == 0:
        raise ZeroDivisionError("the step of a range must not be zero")
    if dtype is None:
        dtype = np.result_type(*(np.asarray(one).dtype for one in (start, stop, step)))
        dtype = np.dtype(np.int64) if dtype.kind == "b" else dtype
    dtype = _dtypes.dtype_of(dtype)
    start, stop, step = (one.item() if isinstance(one, np.generic) else one for one in (start, stop, step))
    count = max(0, math.ceil((stop - start) / step)) if not all(isinstance(one, int) for one in (start, stop, step)) else len(
        range(start, stop, step))
    if dtype.kind in "iu":  # as NumPy, which makes the first two and goes on from them
        for one in (start, start + step)[:count]:
            number_as(one, dtype)
    message = pb.Creation.Range(data_type=_dtypes.NUMBERS[dtype])
    for name, value in (("start", start), ("stop", stop), ("step", step)):
        getattr(message, name).CopyFrom(Number(value).to_proto())
    return _on(_create(_session_of(device), (count,), dtype, range=message), device)


def linspace(start, stop, num: int = 50, *, dtype=None, device: Optional[str] = None, endpoint: bool = True) -> Array:
    start, stop = number_of(start, "linspace's start"), number_of(stop, "linspace's stop")
    num = operator.index(num)
    if num < 0:
        raise ValueError(f"the number of samples must not be negative: {num}")
    is_complex = any(isinstance(one, (complex, np.complexfloating)) for one in (start, stop))
    dtype = _dtype_or(dtype, np.complex128 if is_complex else np.float64)
    message = pb.Creation.LinearSpace(count=num, exclude_endpoint=not endpoint, data_type=_dtypes.NUMBERS[dtype])
    message.start.CopyFrom(Number(start).to_proto())
    message.stop.CopyFrom(Number(stop).to_proto())
    return _on(_create(_session_of(device), (num,), dtype, linear_space=message), device)


def eye(n_rows: int, n_cols: Optional[int] = None, /, *, k: int = 0, dtype=None, device: Optional[str] = None) -> Array:
    n_rows = operator.index(n_rows)
    n_cols, k = n_rows if n_cols is None else operator.index(n_cols), operator.index(k)
    if n_rows < 0 or n_cols < 0:
        raise ValueError(f"negative dimensions are not allowed: {(n_rows, n_cols)}")
    k = min(max(k, -n_rows), n_cols)
    rows = _manipulation.expand_dims(arange(n_rows), axis=1)
    columns = arange(-k, n_cols - k)
    return _on(equal(rows, columns).astype(_dtype_or(dtype, float)), device)


def _triangle(x: Array, k: int, lower: bool) -> Array:
    x, k = array_of(x), operator.index(k)
    if x.ndim < 2:
        raise _errors.ShapeMismatch("a triangle is of a matrix or a stack of them")
    k = min(max(k, -x.shape[-2]), x.shape[-1])
    rows = _manipulation.expand_dims(arange(x.shape[-2]), axis=1)
    columns = arange(x.shape[-1])
    keep = greater_equal(rows + k, columns) if lower else greater_equal(columns, rows + k)
    return where(keep, x, zeros((), dtype=x.dtype))


def tril(x, /, *, k: int = 0) -> Array:
    return _triangle(x, k, True)


def triu(x, /, *, k: int = 0) -> Array:
    return _triangle(x, k, False)


def meshgrid(*arrays, indexing: str = "xy") -> Tuple[Array, ...]:
    if indexing not in ("xy", "ij"):
        raise ValueError(f"indexing is xy or ij, not {indexing}")
    if not arrays:
        return ()
    arrays = tuple(map(array_of, arrays))
    if any(array.ndim > 1 for array in arrays):
        arrays = tuple(_manipulation.reshape(array, (array.size,)) for array in arrays)
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
        results.append(_manipulation.copy(_manipulation.broadcast_to(column, tuple(shape))))
    return tuple(results)


def asarray(obj, /, *, dtype=None, device: Optional[str] = None, copy: Optional[bool] = None, progress=None,
            sharding: Optional[Sharding] = None) -> Array:
    """An array of anything that NumPy or DLPack takes for one; an Array itself unless another type, place or a copy is asked for.

    A large array is sent at once, and `progress(done_bytes, total_bytes)` called as it goes."""
    if isinstance(obj, Array):
        if dtype is not None and _dtypes.dtype_of(dtype) != obj.dtype:
            if copy is False:
                raise ValueError("another type needs a copy")
            obj = obj.astype(dtype)
        elif copy:
            obj = _manipulation.copy(obj)
        return _on(obj, device) if sharding is None else reshard(obj, sharding)
    if copy is False:
        raise ValueError("elements on the host must be copied to a device")
    dtype = None if dtype is None else _dtypes.dtype_of(dtype)
    if isinstance(obj, (list, tuple)):
        obj = from_sequence(obj, dtype)
    elif not isinstance(obj, np.ndarray):
        obj = (
            _from_other(obj)
            if dtype is None or hasattr(obj, "__array__") or hasattr(obj, "__dlpack__")
            else np.asarray(obj, dtype)
        )
    obj = host_array(obj)
    if dtype is not None:
        obj = obj.astype(dtype, copy=False)
    return wrap(current_session()._upload(obj, device, progress, sharding))


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
    if hasattr(obj, "__array__") or not hasattr(obj, "__dlpack__"):
        return host_array(obj)
    return np.from_dlpack(obj)


def from_dlpack(x, /, *, device: Optional[str] = None, copy: Optional[bool] = None) -> Array:
    """A copy on the service of an array in host memory."""
    if isinstance(x, Array):
        return asarray(x, device=device, copy=copy)
    if copy is False:
        raise BufferError("elements on the host must be copied to a device")
    return asarray(np.from_dlpack(x), device=device)
