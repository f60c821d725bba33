"""Reductions, with NumPy's types."""

import math
from typing import Optional

import numpy as np

from stride import _dtypes, _errors, _inference
from stride._array import Array, node_of, wrap
from stride._elementwise import absolute, square, sqrt
from stride._graph import Node, record
from stride.v1 import operation_pb2 as pb

__all__ = ["all", "any", "argmax", "argmin", "count_nonzero", "max", "mean", "min", "norm", "prod", "std", "sum", "var"]

_F = pb.Reduction


def _reduce(function: int, node: Node, axes: tuple, keepdims: bool, dtype: np.dtype, data_type=None) -> Array:
    """`dtype` is the result's; `data_type` what the request asks for."""
    shape = tuple(1 if i in axes else n for i, n in enumerate(node.shape) if keepdims or i not in axes)

    def build(flush, result, operands):
        reduction = pb.Reduction(function=function, input=operands[0], axes=axes, keep_dims=keepdims)
        if data_type is not None:
            reduction.data_type = _dtypes.NUMBERS[data_type]
        flush.operation(result.handle, result.origin, reduction=reduction)

    return wrap(record(node.session, shape, dtype, build, (node,)))


def _summing(function: int, x, axis, dtype, keepdims: bool) -> Array:
    array = x if isinstance(x, Array) else wrap(node_of(x))
    if dtype is not None:
        dtype = _dtypes.dtype_of(dtype)
        if not np.can_cast(array.dtype, dtype, "same_kind"):
            array = array.astype(dtype)
    else:
        dtype = array.dtype
        if dtype.kind in "bi":
            dtype = _dtypes.int64
        elif dtype.kind == "u":
            dtype = _dtypes.uint64
    axes = _inference.normal_axes(axis, array.ndim)
    if not axes and array.ndim:
        return array.astype(dtype)
    return _reduce(function, array._node, axes, keepdims, dtype, dtype)


def sum(x, /, *, axis=None, dtype=None, keepdims: bool = False) -> Array:  # noqa: A001
    return _summing(_F.FUNCTION_SUM, x, axis, dtype, keepdims)


def prod(x, /, *, axis=None, dtype=None, keepdims: bool = False) -> Array:
    return _summing(_F.FUNCTION_PROD, x, axis, dtype, keepdims)


def _extreme(function: int, name: str, x, axis, keepdims: bool) -> Array:
    node = node_of(x)
    axes = _inference.normal_axes(axis, len(node.shape))
    if not axes and node.shape:
        return wrap(node_of(x)) if not isinstance(x, Array) else x.astype(x.dtype)
    if any_(node.shape[i] == 0 for i in axes) and math.prod(n for i, n in enumerate(node.shape) if i not in axes):
        raise ValueError(f"an empty array has no {name}; its shape is {node.shape}")
    return _reduce(function, node, axes, keepdims, node.dtype)


any_ = any  # Python's, before ours has the name


def min(x, /, *, axis=None, keepdims: bool = False) -> Array:  # noqa: A001
    return _extreme(_F.FUNCTION_MIN, "min", x, axis, keepdims)


def max(x, /, *, axis=None, keepdims: bool = False) -> Array:  # noqa: A001
    return _extreme(_F.FUNCTION_MAX, "max", x, axis, keepdims)


def mean(x, /, *, axis=None, dtype=None, keepdims: bool = False) -> Array:
    array = x if isinstance(x, Array) else wrap(node_of(x))
    if dtype is not None:
        array = array.astype(dtype, copy=False)
    dtype = _dtypes.float64 if array.dtype.kind in "biu" else array.dtype
    axes = _inference.normal_axes(axis, array.ndim)
    if not axes and array.ndim:
        return array.astype(dtype)
    return _reduce(_F.FUNCTION_MEAN, array._node, axes, keepdims, dtype)


def var(x, /, *, axis=None, correction: float = 0.0, keepdims: bool = False) -> Array:
    array = x if isinstance(x, Array) else wrap(node_of(x))
    axes = _inference.normal_axes(axis, array.ndim)
    count = math.prod(array.shape[i] for i in axes)
    deviations = square(absolute(array - mean(array, axis=axes, keepdims=True)))
    total = sum(deviations, axis=axes, keepdims=keepdims)
    # As NumPy: no degrees of freedom left give infinities and NaN.
    left = float(count - correction)
    return total / (left if left > 0 else 0.0)


def std(x, /, *, axis=None, correction: float = 0.0, keepdims: bool = False) -> Array:
    return sqrt(var(x, axis=axis, correction=correction, keepdims=keepdims))


def _truth(function: int, x, axis, keepdims: bool) -> Array:
    array = x if isinstance(x, Array) else wrap(node_of(x))
    axes = _inference.normal_axes(axis, array.ndim)
    if not axes and array.ndim:
        return array.astype(bool)
    return _reduce(function, array._node, axes, keepdims, _dtypes.bool)


def any(x, /, *, axis=None, keepdims: bool = False) -> Array:  # noqa: A001
    return _truth(_F.FUNCTION_ANY, x, axis, keepdims)


def all(x, /, *, axis=None, keepdims: bool = False) -> Array:  # noqa: A001
    return _truth(_F.FUNCTION_ALL, x, axis, keepdims)


def _place(function: int, name: str, x, axis: Optional[int], keepdims: bool) -> Array:
    node = node_of(x)
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
    axes = _inference.normal_axes(axis, array.ndim)
    if not axes and array.ndim:
        return (array != 0).astype(_dtypes.int64)
    return _reduce(_F.FUNCTION_COUNT_NONZERO, array._node, axes, keepdims, _dtypes.int64)


def norm(x, /, *, axis=None, keepdims: bool = False) -> Array:
    """Euclidean: the square root of the sum of |x|**2."""
    node = node_of(x)
    dtype = {"c": _dtypes.float32 if node.dtype == _dtypes.complex64 else _dtypes.float64, "f": node.dtype}.get(
        "f" if _dtypes.is_float(node.dtype) else node.dtype.kind, _dtypes.float64)
    axes = _inference.normal_axes(axis, len(node.shape))
    if not axes and node.shape:
        return absolute(x).astype(dtype)
    return _reduce(_F.FUNCTION_NORM, node, axes, keepdims, dtype)
