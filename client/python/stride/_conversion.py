"""Arrays of other objects: lists, NumPy's arrays, buffers, and what DLPack shares."""

import operator
from typing import Optional, Tuple

import numpy as np

from stride import (
    _arguments, _assembly, _casts, _cuda_memory, _dtypes, _element_numbers, _host_arrays, _interchange, _local,
    _manipulation,
)
from stride._array import _SCALARS, Array, array_of, host_array, wrap
from stride._session import current_session
from stride._sharding import Sharding, reshard

__all__ = [
    "array", "asanyarray", "asarray", "asarray_chkfinite", "ascontiguousarray", "asfortranarray", "copy", "from_dlpack",
    "require",
]

_PLAIN = frozenset((bool, int, float, complex))  # the types in most lists


def _on(array: Array, device: Optional[str]) -> Array:
    return array if device is None else array.to_device(device)


def _check_memory_order(order: Optional[str], like, orders: Tuple[str, ...] = ("F", "C")) -> None:
    if order != "C":
        _arguments.check_order(order, orders)
    if like is not None and not isinstance(like, Array):
        raise TypeError(f"like= names an array of the service here, not {type(like).__name__}")


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
        elif copy or _casts.lies_otherwise(a, order):
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
        result = _casts.copy(result)
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
    return _manipulation.permute_dims(_casts.copy(turned), range(result.ndim - 1, -1, -1))


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
    return _casts.copy(result) if must_copy else result


def has_arrays_to_compute(obj) -> bool:
    """Whether sequences hold an array whose elements the host does not have."""
    if isinstance(obj, Array):
        return _host_arrays.values_of(obj) is None and obj._node.cached() is None
    return isinstance(obj, (list, tuple)) and any(map(has_arrays_to_compute, obj))


def _has_locals(obj) -> bool:
    """Whether sequences hold an element or an array of a loop of the host (`_local.py`)."""
    if isinstance(obj, (list, tuple)):
        return any(map(_has_locals, obj))
    return type(obj) is _element_numbers.Element or type(obj) in _local.classes


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
        return _assembly.stack(parts)
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
