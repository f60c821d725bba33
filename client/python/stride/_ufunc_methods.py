"""Methods of ufuncs: accumulate, reduce, outer, at, reduceat."""

import functools
from typing import Optional

import numpy as np

from stride import _dtypes, _errors, _inference, _local
from stride._array import _SCALARS, Array, host_array, node_of, wrap
from stride._graph import Node, record, write_in_place
from stride._numbers import Number, check_numbers
from stride._ufunc import _give
from stride.v1 import operation_pb2 as pb

_REORDERABLE = {
    "add", "multiply", "maximum", "minimum", "fmax", "fmin", "logical_or", "logical_and", "logical_xor",
    "bitwise_or", "bitwise_and", "bitwise_xor", "gcd", "lcm", "hypot", "logaddexp", "logaddexp2",
}


def _function(name: str):
    from stride import _elementwise

    return getattr(_elementwise, name)


def _array_of(x) -> Array:
    return x if isinstance(x, Array) else wrap(node_of(x))


def accumulated_type(name: str, dtype: np.dtype) -> np.dtype:
    """The type in which `name` accumulates elements of a type."""
    if name in ("add", "multiply") and dtype.kind in "biu":
        return _dtypes.uint64 if dtype.kind == "u" else _dtypes.int64
    if name.startswith("logical_"):
        return _dtypes.bool
    loop = _inference.elementwise(name, dtype, dtype)
    if loop[0] != loop[1]:
        raise _errors.DataTypeMismatch(
            f"{name} of {loop[0]} gives {loop[1]}: it neither reduces nor accumulates", reason="DATA_TYPE_MISMATCH"
        )
    return loop[1]


def accumulate(name: str, x, axis: int = 0, dtype=None, out: Optional[Array] = None, include_initial: bool = False,
               reverse: bool = False, exclusive: bool = False) -> Array:
    """The elements up to each place along an axis, combined by the function.

    Parameters
        name: the function's name, which the method of a function has already.
        x: an array, or what becomes one.
        axis: the axis.
        dtype: the element type in which it is computed.
        out: an array of the result's shape that takes it.
        include_initial: whether the identity stands in front.
        reverse: whether it goes from the last element to the first.
        exclusive: whether each place has the elements before it alone.
    Returns
        An array of `x`'s shape, one element longer along the axis with `include_initial`.
    Raises
        AxisError for an axis that `x` lacks; TypeError for an array without axes.
    Example
        >>> st.multiply.accumulate(st.array([1, 2, 4])).tolist()
        [1, 2, 8]
    """
    array = _array_of(x)
    if not array.ndim:
        raise TypeError(f"cannot accumulate on a scalar: {name}")
    axis = _inference.normal_axis(axis, array.ndim)
    dtype = accumulated_type(name, array.dtype) if dtype is None else _dtypes.dtype_of(dtype)
    if not np.can_cast(array.dtype, dtype, "same_kind"):
        array = array.astype(dtype)
    shape = list(array.shape)
    shape[axis] += include_initial

    def build(flush, node, operands):
        flush.operation(
            node.handle,
            node.origin,
            accumulation=pb.Accumulation(
                function=name, input=operands[0], axis=axis, include_initial=include_initial, reverse=reverse,
                exclusive=exclusive, data_type=_dtypes.NUMBERS[dtype],
            ),
        )

    host = None
    if not (include_initial or reverse or exclusive) and hasattr(np, name):
        host = _local.wide(getattr(np, name).accumulate, dtype, axis=axis)
    result = wrap(record(array.session, tuple(shape), dtype, build, (array._node,), host=host))
    return _give(result, out, None, "unsafe")


def of_each(name: str, array: Array, initial, where) -> Array:
    """A reduction along no axes: each element combined with the initial value. Where the mask is false: the
    initial value, or the identity."""
    from stride import _elementwise

    identity = getattr(np, name).identity
    start = identity if initial is None else initial
    result = array if initial is None else _function(name)(initial, array)
    return (
        result if where is True else _elementwise.where(_array_of(where), result, np.asarray(start, result.dtype)[()])
    )


def reduce(
    name: str, x, axis=0, dtype=None, out: Optional[Array] = None, keepdims: bool = False, initial=None, where=True
) -> Array:
    """All elements along axes, combined by the function.

    Parameters
        name: the function's name, which the method of a function has already.
        x: an array, or what becomes one.
        axis: the axis, or for several a tuple; None for all.
        dtype: the element type in which it is computed.
        out: an array of the result's shape that takes it.
        keepdims: whether the axes stay, with one element.
        initial: the value that it begins with.
        where: bools that broadcast; elements where it is false are left out.
    Returns
        An array without the axes.
    Raises
        ValueError for no elements where the function has no identity; AxisError for an axis that `x` lacks;
        DataTypeMismatch for types whose result cannot be combined further.
    Example
        >>> st.multiply.reduce(st.array([1, 2, 4])).item()
        8
    """
    from stride import _reductions

    array = _array_of(x)
    axes = _inference.normal_axes(axis, array.ndim)
    if len(axes) > 1 and name not in _REORDERABLE:
        raise ValueError(f"reduction over several axes needs a function whose order does not matter; {name} is none")
    identity = getattr(np, name).identity
    if where is not True and identity is None and initial is None:
        raise ValueError(f"{name} has no identity, so that where= needs initial=")
    if any(array.shape[i] == 0 for i in axes) and initial is None and identity is None:
        raise ValueError(f"an empty array has no {name}.reduce; its shape is {array.shape}; initial= gives it one")
    logical = name.startswith("logical_")
    if not axes and array.ndim:
        array = array.astype(bool, copy=False) if logical else array if dtype is None else array.astype(dtype)
        return _give(of_each(name, array, initial, where), out, None, "unsafe")
    kind = accumulated_type(name, array.dtype) if dtype is None or logical else _dtypes.dtype_of(dtype)
    if logical:
        array = array.astype(bool, copy=False)
    elif not np.can_cast(array.dtype, kind, "same_kind"):
        array = array.astype(kind)
    result = _reductions.reduce_by(name, array._node, axes, keepdims, kind, None if logical else kind, where, initial)
    return _give(result, out, None, "unsafe")


def outer(name: str, a, b, **options) -> Array:
    """The function of every element of one array with every element of another.

    Parameters
        name: the function's name, which the method of a function has already.
        a: an array, or what becomes one.
        b: another array, or what becomes one.
        options: `out`, `where`, `casting` and `dtype` of the function.
    Returns
        An array whose axes are `a`'s, then `b`'s.
    Raises
        DataTypeMismatch for types that the function does not take.
    Example
        >>> st.multiply.outer(st.array([1, 2]), st.array([1, 2, 4])).tolist()
        [[1, 2, 4], [2, 4, 8]]
    """
    from stride import _manipulation

    a, b = _array_of(a), _array_of(b)
    return _function(name)(_manipulation.reshape(a, a.shape + (1,) * b.ndim), b, **options)


_C_TYPES = {
    "b": "bool", "i1": "signed char", "i2": "short", "i4": "int", "i8": "long long", "u1": "unsigned char",
    "u2": "unsigned short", "u4": "unsigned int", "u8": "unsigned long long", "f4": "float", "f8": "double",
}


def c_type(dtype: np.dtype) -> Optional[str]:
    """How CUDA C++ names an element type; None for those that are no plain numbers there."""
    return _C_TYPES.get("b" if dtype.kind == "b" else f"{dtype.kind}{dtype.itemsize}")


def _at_value(name: str, a: Array, b):
    """A node or a number, with which `name` gives what can go into `a`; None where the host is to compute."""
    value = Number(b) if isinstance(b, _SCALARS) else node_of(b, a.session)
    kind = value.type if type(value) is Number else value.dtype
    common = _inference.promote(a.dtype, kind)
    if type(value) is Number and value.type is int:
        value, = check_numbers(name, (value,), common)
    result = _inference.elementwise(name, common, common)[1]
    if np.can_cast(result, a.dtype, "same_kind"):
        return value
    if result.kind in "iu" and a.dtype.kind in "iu" and type(value) is Node and _fits_unsigned(name, value, a.dtype):
        return wrap(value).astype(a.dtype)._node
    return None


# For integers, the low bits of their results depend on the low bits of the operands alone.
_MODULAR = {"add", "subtract", "multiply", "bitwise_and", "bitwise_or", "bitwise_xor"}
_OF_VALUES = {"maximum", "minimum", "fmax", "fmin", "floor_divide", "remainder", "power"}


def _fits_unsigned(name: str, value: Node, dtype: np.dtype) -> bool:
    """True if the result in an unsigned type is the same where signed values are converted first."""
    if name in _MODULAR:
        return True
    known = value.cached() if name in _OF_VALUES else None
    return known is not None and bool(((known >= 0) & (known <= np.iinfo(dtype).max)).all())


def _at_on_host(name: str, result: np.dtype, a: Array, indices, *values) -> None:
    """NumPy casts each result to the array's type before the next is computed, whatever the two are. The service casts
    within a kind, so that NumPy computes the others."""
    from stride import _indexing, _numpy_protocol

    _indexing.check_writable(a)
    if a.session._is_trace or not hasattr(np, name):
        raise _errors.DataTypeMismatch(
            f"{name}.at: the service does not cast {result} to {a.dtype} element by element; convert the values first",
            reason="DATA_TYPE_MISMATCH",
        )
    host = a.to_numpy()
    getattr(np, name).at(host, _numpy_protocol.on_host(indices), *map(_numpy_protocol.on_host, values))
    _indexing.write(a, wrap(node_of(host, a.session)))


def apply_at(name: str, a: Array, indices, value) -> None:
    """`value`: a node, a number, or None for a function of one input."""
    from stride import _casts, _indexing, _manipulation, _routines

    _indexing.check_writable(a)
    keys = _indexing._as_keys(indices)
    target = a
    if 0 < len(keys) <= a.ndim and all(
        isinstance(one, (int, np.integer)) or isinstance(one, Array) and one.dtype.kind != "b" for one in keys
    ):
        places = [one if isinstance(one, Array) else wrap(node_of(np.asarray(one), a.session)) for one in keys]
        for axis, (one, extent) in enumerate(zip(places, a.shape)):
            _indexing.check_bounds(one, axis, extent)
        shape = (*_indexing.broadcast_indices(places), *a.shape[len(keys):])
    else:
        # Slices, masks and the like: the places that they name, along one axis.
        places = [_routines.linear_places(a, indices)]
        shape = places[0].shape
        target = _manipulation.reshape(a if a._node.strides is None else _casts.copy(a), (a.size,))
    if type(value) is Node:
        if len(value.shape) > len(shape) or any(n not in (1, m) for n, m in zip(value.shape[::-1], shape[::-1])):
            raise _errors.ShapeMismatch(
                f"{name}.at: values of shape {value.shape} do not broadcast to the shape {shape} of the indexed "
                "elements",
                reason="SHAPE_MISMATCH",
            )
        if value.shape != shape and target is not a:
            value = _casts.copy(_manipulation.broadcast_to(wrap(value), shape))._node
    nodes = [one._node for one in places]

    def make(flush):
        message = pb.ApplyAt(function=name, indices=[flush.operand(one) for one in nodes])
        if value is not None:
            message.values.CopyFrom(flush.operand(value))
        return pb.Operation(apply_at=message)

    write_in_place(target._node, make)
    if target is not a and a._node.strides is not None:
        _indexing.write(a, _manipulation.reshape(target, a.shape))


def at(name: str, a: Array, indices, b) -> None:
    """`a[indices] = name(a[indices], b)`, in the order of the indices, as NumPy; a repeated index counts each
    time.

    Parameters
        name: the function's name, which the method of a function has already.
        a: the array that is changed.
        indices: what stands between brackets: integers, slices, arrays of integers or bools.
        b: a number, or what broadcasts to the places.
    Returns
        None.
    Raises
        IndexError for an index outside; TypeError for an `a` on the host.
    Example
        >>> x = st.zeros(2)
        >>> st.add.at(x, [0, 0, 1], 1.0)
        >>> x.tolist()
        [2.0, 1.0]
    """
    if not isinstance(a, Array):
        raise TypeError(f"{name}.at changes a stride array, not {type(a).__name__}")
    value = _at_value(name, a, b)
    if value is None:
        kind = b.dtype if isinstance(b, Array) else np.asarray(b).dtype
        _at_on_host(name, _inference.elementwise(name, a.dtype, kind)[1], a, indices, b)
        return
    apply_at(name, a, indices, value)


def unary_at(name: str, a: Array, indices) -> None:
    """`a[indices] = name(a[indices])`, once for each occurrence of an index.

    Parameters
        name: the function's name, which the method of a function has already.
        a: the array that is changed.
        indices: what stands between brackets: integers, slices, arrays of integers or bools.
    Returns
        None.
    Raises
        IndexError for an index outside; TypeError for an `a` on the host.
    Example
        >>> x = st.array([1.0, 2.0])
        >>> st.negative.at(x, [0])
        >>> x.tolist()
        [-1.0, 2.0]
    """
    if not isinstance(a, Array):
        raise TypeError(f"{name}.at changes a stride array, not {type(a).__name__}")
    result = _inference.elementwise(name, a.dtype)[1]
    if not np.can_cast(result, a.dtype, "same_kind"):
        _at_on_host(name, result, a, indices)
        return
    apply_at(name, a, indices, None)


def reduceat(name: str, x, indices, axis: int = 0, dtype=None, out: Optional[Array] = None) -> Array:
    """The elements of parts of an axis, combined by the function; the parts begin at indices.

    Parameters
        name: the function's name, which the method of a function has already.
        x: an array, or what becomes one.
        indices: where parts begin; a part ends where the next begins.
        axis: the axis.
        dtype: the element type in which it is computed.
        out: an array of the result's shape that takes it.
    Returns
        An array with an element along the axis for each index.
    Raises
        IndexError for an index outside; AxisError for an axis that `x` lacks.
    Example
        >>> st.add.reduceat(st.array([1, 2, 4]), [0, 2]).tolist()
        [3, 4]
    """
    array = _array_of(x)
    axis = _inference.normal_axis(axis, array.ndim)
    kind = accumulated_type(name, array.dtype) if dtype is None else _dtypes.dtype_of(dtype)
    if not np.can_cast(array.dtype, kind, "same_kind"):
        array = array.astype(kind)
    if not isinstance(indices, Array):
        indices = host_array(indices)
        if indices.dtype.kind not in "iu" and indices.size:
            raise _errors.DataTypeMismatch(
                f"{name}.reduceat takes indices of integers, not of {indices.dtype}", reason="DATA_TYPE_MISMATCH"
            )
        indices = indices.astype(np.int64)
        extent = array.shape[axis]
        wrong = indices[(indices < 0) | (indices >= extent)]
        if wrong.size:
            raise IndexError(f"index {wrong.flat[0]} is out of bounds for {name}.reduceat with {extent} elements")
    begins = node_of(indices, array.session)
    shape = (*array.shape[:axis], *begins.shape, *array.shape[axis + 1:])

    def build(flush, node, operands):
        flush.operation(node.handle, node.origin, reduce_at=pb.ReduceAt(
            function=name, input=operands[0], indices=operands[1], axis=axis, data_type=_dtypes.NUMBERS[kind]))

    return _give(wrap(record(array.session, shape, kind, build, (array._node, begins))), out, None, "unsafe")


def bound(method, name: str) -> functools.partial:
    """A method of one function, with the method's docstring."""
    made = functools.partial(method, name)
    made.__doc__ = method.__doc__
    return made


def add_methods(function, name: str) -> None:
    """NumPy's, as attributes of a function of two inputs and one result."""
    for method in (reduce, accumulate, outer, at, reduceat):
        setattr(function, method.__name__, bound(method, name))


def add_attributes(function, ufunc: np.ufunc) -> None:
    """Copies the attributes of NumPy's ufunc, with the loops whose types the service has."""
    there = [one for one in ufunc.types if not set(one) & _OTHER_TYPES]
    function.nin, function.nout, function.nargs = ufunc.nin, ufunc.nout, ufunc.nargs
    function.identity, function.signature = ufunc.identity, ufunc.signature
    function.types, function.ntypes = there, len(there)
    function.resolve_dtypes = ufunc.resolve_dtypes


# Objects, long doubles, dates, strings and structured elements.
_OTHER_TYPES = frozenset("OgGmMSUV")
