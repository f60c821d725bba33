"""Reductions, with NumPy's types."""

import functools
import math
import operator
from typing import Optional, Union

import numpy as np

from stride import _dtypes, _errors, _inference
from stride._array import Array, node_of, wrap
from stride._elementwise import absolute, square, sqrt
from stride._graph import Node, Number, Prepared, record
from stride.v1 import operation_pb2 as pb

__all__ = ["all", "any", "argmax", "argmin", "count_nonzero", "max", "mean", "min", "norm", "prod", "std", "sum", "var"]

_F = pb.Reduction
_SUMS = {"b": _dtypes.int64, "i": _dtypes.int64, "u": _dtypes.uint64}  # their types, by the kind of what is summed


def mask_node(where, node: Node) -> Optional[Node]:
    """NumPy's `where=` of a reduction of `node`: None for all elements."""
    if where is True or where is None:
        return None
    mask = node_of(where, node.session)
    if mask.dtype != _dtypes.bool:
        raise _errors.DataTypeMismatch(f"where= is an array of bool, not of {mask.dtype}", reason="DATA_TYPE_MISMATCH")
    if _inference.broadcast(node.shape, mask.shape) != node.shape:
        raise _errors.ShapeMismatch(f"where= of {mask.shape} does not fit elements of {node.shape}", reason="SHAPE_MISMATCH")
    return mask


def initial_number(initial) -> Optional[Number]:
    """NumPy's `initial=`."""
    if initial is None or initial is np._NoValue:
        return None
    if isinstance(initial, (Array, np.ndarray)):
        initial = np.asarray(initial)[()]
    return Number(initial)


def reduce_by(function: Union[int, str], node: Node, axes: tuple, keepdims: bool, dtype: np.dtype, data_type=None, where=True, initial=None,
              more: tuple = ()) -> Array:
    """One operation. `function`: the service's number, or a ufunc's or reduction's name. `dtype` is the result's; `data_type` what the request asks for."""
    shape = _inference.broadcast(node.shape, *(one.shape for one in more)) if more else node.shape
    whole = len(axes) == len(shape) and not keepdims
    shape = () if whole else tuple([1 if i in axes else n for i, n in enumerate(shape) if keepdims or i not in axes])
    prepared = _prepared(function, axes, keepdims, data_type)
    if where is True and initial is None and not more:
        return wrap(record(node.session, shape, dtype, prepared, (node,)))
    mask, number = mask_node(where, node), initial_number(initial)
    start = None if number is None else number.to_proto()

    def build(flush, result, operands):
        reduction = flush.begin(result.handle, result.origin, prepared.operation).reduction
        reduction.input.CopyFrom(operands[0])
        if more:
            reduction.more_inputs.extend(operands[1:1 + len(more)])
        if mask is not None:
            reduction.where.CopyFrom(operands[-1])
        if start is not None:
            reduction.initial.CopyFrom(start)

    return wrap(record(node.session, shape, dtype, build, (node, *more) if mask is None else (node, *more, mask)))


@functools.lru_cache(maxsize=1024)
def _prepared(function: Union[int, str], axes: tuple, keepdims: bool, data_type: Optional[np.dtype]) -> Prepared:
    """A reduction by these, of any one input."""
    reduction = pb.Reduction(axes=axes, keep_dims=keepdims)
    if isinstance(function, str):
        reduction.function_name = function
    else:
        reduction.function = function
    if data_type is not None:
        reduction.data_type = _dtypes.NUMBERS[data_type]
    return Prepared(pb.Operation(reduction=reduction), _fill)


def _fill(operation: pb.Operation, handles) -> None:
    operation.reduction.input.handle = handles[0]


def _of_one(array: Array, name: str, where, initial) -> Array:
    """Of no axes: each element is reduced by itself."""
    from stride import _ufunc

    return array if where is True and initial is None else _ufunc.of_each(name, array, initial, where)


def _summing(function: int, x, axis, dtype, keepdims: bool, initial, where) -> Array:
    array = x if isinstance(x, Array) else wrap(node_of(x))
    node = array._node
    if dtype is not None:
        dtype = _dtypes.dtype_of(dtype)
        if not np.can_cast(node.dtype, dtype, "same_kind"):
            array = array.astype(dtype)
            node = array._node
    else:
        dtype = _SUMS.get(node.dtype.kind, node.dtype)
    axes = _inference.reduced_axes(axis, len(node.shape))
    if not axes and node.shape:
        return _of_one(array.astype(dtype), "add" if function == _F.FUNCTION_SUM else "multiply", where, initial)
    return reduce_by(function, node, axes, keepdims, dtype, dtype, where, initial)


def sum(x, /, *, axis=None, dtype=None, keepdims: bool = False, initial=None, where=True) -> Array:  # noqa: A001
    return _summing(_F.FUNCTION_SUM, x, axis, dtype, keepdims, initial, where)


def prod(x, /, *, axis=None, dtype=None, keepdims: bool = False, initial=None, where=True) -> Array:
    return _summing(_F.FUNCTION_PROD, x, axis, dtype, keepdims, initial, where)


def _extreme(function: int, name: str, x, axis, keepdims: bool, initial, where) -> Array:
    node = node_of(x)
    axes = _inference.reduced_axes(axis, len(node.shape))
    if where is not True and initial is None:
        raise ValueError(f"{name} has no identity, so that where= needs initial=")
    if not axes and node.shape:
        return _of_one(wrap(node) if not isinstance(x, Array) else x.astype(x.dtype), f"{name}imum", where, initial)
    if (initial is None and any_(node.shape[i] == 0 for i in axes)
            and math.prod(n for i, n in enumerate(node.shape) if i not in axes)):
        raise ValueError(f"an empty array has no {name}; its shape is {node.shape}")
    return reduce_by(function, node, axes, keepdims, node.dtype, None, where, initial)


any_ = any  # Python's, before ours has the name


def min(x, /, *, axis=None, keepdims: bool = False, initial=None, where=True) -> Array:  # noqa: A001
    return _extreme(_F.FUNCTION_MIN, "min", x, axis, keepdims, initial, where)


def max(x, /, *, axis=None, keepdims: bool = False, initial=None, where=True) -> Array:  # noqa: A001
    return _extreme(_F.FUNCTION_MAX, "max", x, axis, keepdims, initial, where)


def mean(x, /, *, axis=None, dtype=None, keepdims: bool = False, where=True) -> Array:
    array = x if isinstance(x, Array) else wrap(node_of(x))
    if dtype is not None:
        dtype = _dtypes.dtype_of(dtype)
        if dtype.kind in "biu":
            return _whole_mean(array, axis, dtype, keepdims, where)
        array = array.astype(dtype, copy=False)
    dtype = _dtypes.float64 if array.dtype.kind in "biu" else array.dtype
    axes = _inference.normal_axes(axis, array.ndim)
    if not axes and array.ndim and where is True:
        return array.astype(dtype)
    if not axes and array.ndim:
        from stride._elementwise import where as choose

        return choose(where, array.astype(dtype), float("nan"))
    return reduce_by(_F.FUNCTION_MEAN, array._node, axes, keepdims, dtype, None, where)


def _whole_mean(array: Array, axis, dtype: np.dtype, keepdims: bool, where) -> Array:
    """The mean in an integer type, as in NumPy: the sum in that type, and the whole part of the quotient."""
    axes = _inference.normal_axes(axis, array.ndim)
    total = sum(array, axis=axes, dtype=dtype, keepdims=keepdims, where=where)
    if where is True:
        count = math.prod(array.shape[i] for i in axes)
    else:
        from stride import _manipulation

        taken = _manipulation.broadcast_to(
            where if isinstance(where, Array) else wrap(node_of(where, array.session)), array.shape
        )
        count = count_nonzero(taken, axis=axes, keepdims=keepdims)
    return (total / count).astype(dtype)


def var(x, /, *, axis=None, correction: float = 0.0, keepdims: bool = False, where=True) -> Array:
    array = x if isinstance(x, Array) else wrap(node_of(x))
    axes = _inference.normal_axes(axis, array.ndim)
    deviations = square(absolute(array - mean(array, axis=axes, keepdims=True, where=where)))
    total = sum(deviations, axis=axes, keepdims=keepdims, where=where)
    if where is not True:
        from stride import _elementwise, _manipulation

        taken = _manipulation.broadcast_to(where if isinstance(where, Array) else wrap(node_of(where, array.session)), array.shape)
        # No degrees of freedom left: as below.
        left = _elementwise.maximum(count_nonzero(taken, axis=axes, keepdims=keepdims) - correction, 0)
        return total / left.astype(total.dtype)
    count = math.prod(array.shape[i] for i in axes)
    # As NumPy: no degrees of freedom left give infinities and NaN.
    left = float(count - correction)
    return total / (left if left > 0 else 0.0)


def std(x, /, *, axis=None, correction: float = 0.0, keepdims: bool = False, where=True) -> Array:
    return sqrt(var(x, axis=axis, correction=correction, keepdims=keepdims, where=where))


def _truth(function: int, x, axis, keepdims: bool, where) -> Array:
    array = x if isinstance(x, Array) else wrap(node_of(x))
    axes = _inference.reduced_axes(axis, array.ndim)
    if not axes and array.ndim:
        return _of_one(array.astype(bool), "logical_or" if function == _F.FUNCTION_ANY else "logical_and", where, None)
    return reduce_by(function, array._node, axes, keepdims, _dtypes.bool, None, where)


def any(x, /, *, axis=None, keepdims: bool = False, where=True) -> Array:  # noqa: A001
    return _truth(_F.FUNCTION_ANY, x, axis, keepdims, where)


def all(x, /, *, axis=None, keepdims: bool = False, where=True) -> Array:  # noqa: A001
    return _truth(_F.FUNCTION_ALL, x, axis, keepdims, where)


def _place(function: int, name: str, x, axis: Optional[int], keepdims: bool) -> Array:
    node = node_of(x)
    if not node.shape and axis is not None and operator.index(axis) in (0, -1):
        axis = None
    axes = tuple(range(len(node.shape))) if axis is None else (_inference.normal_axis(axis, len(node.shape)),)
    if any_(node.shape[i] == 0 for i in axes) and math.prod(n for i, n in enumerate(node.shape) if i not in axes):
        raise ValueError(f"an empty array has no {name}; its shape is {node.shape}")
    # The request's "all" is no axis: of several it takes no list.
    shape = tuple(1 if i in axes else n for i, n in enumerate(node.shape) if keepdims or i not in axes)

    def build(flush, result, operands):
        flush.operation(result.handle, result.origin, reduction=pb.Reduction(
            function=function, input=operands[0], axes=() if axis is None else axes, keep_dims=keepdims))

    return wrap(record(node.session, shape, _dtypes.int64, build, (node,)))


def argmin(x, /, *, axis: Optional[int] = None, keepdims: bool = False) -> Array:
    return _place(_F.FUNCTION_ARGMIN, "argmin", x, axis, keepdims)


def argmax(x, /, *, axis: Optional[int] = None, keepdims: bool = False) -> Array:
    return _place(_F.FUNCTION_ARGMAX, "argmax", x, axis, keepdims)


def count_nonzero(x, /, *, axis=None, keepdims: bool = False) -> Array:
    array = x if isinstance(x, Array) else wrap(node_of(x))
    axes = _inference.reduced_axes(axis, array.ndim)
    if not axes and array.ndim:
        return (array != 0).astype(_dtypes.int64)
    return reduce_by(_F.FUNCTION_COUNT_NONZERO, array._node, axes, keepdims, _dtypes.int64)


def norm(x, /, *, axis=None, keepdims: bool = False) -> Array:
    """Euclidean: the square root of the sum of |x|**2."""
    node = node_of(x)
    dtype = {"c": _dtypes.float32 if node.dtype == _dtypes.complex64 else _dtypes.float64, "f": node.dtype}.get(
        "f" if _dtypes.is_float(node.dtype) else node.dtype.kind, _dtypes.float64)
    axes = _inference.normal_axes(axis, len(node.shape))
    if not axes and node.shape:
        return absolute(x).astype(dtype)
    return reduce_by(_F.FUNCTION_NORM, node, axes, keepdims, dtype)
