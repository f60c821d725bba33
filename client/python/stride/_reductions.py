"""Reductions to sums, extremes, places and truth, with NumPy's types."""

import functools
import math
import operator
from typing import Optional, Union

import numpy as np

from stride import _dtypes, _errors, _graph, _inference, _local
from stride._array import Array, array_of, node_of, wrap
from stride._elementwise import absolute
from stride._graph import Node, Prepared, record
from stride._numbers import Number
from stride.v1 import operation_pb2 as pb

__all__ = [
    "all",
    "amax",
    "amin",
    "any",
    "argmax",
    "argmin",
    "count_nonzero",
    "max",
    "min",
    "norm",
    "prod",
    "ptp",
    "sum",
]

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
        raise _errors.ShapeMismatch(
            f"where= of {mask.shape} does not fit elements of {node.shape}", reason="SHAPE_MISMATCH"
        )
    return mask


def initial_number(initial) -> Optional[Number]:
    """NumPy's `initial=`."""
    if initial is None or initial is np._NoValue:
        return None
    if isinstance(initial, (Array, np.ndarray)):
        initial = np.asarray(initial)[()]
    return Number(initial)


def reduce_by(
    function: Union[int, str], node: Node, axes: tuple, keepdims: bool, dtype: np.dtype, data_type=None,
    where=True, initial=None, more: tuple = (), skip_nan: bool = False, correction: float = 0.0,
) -> Array:
    """One operation. `function`: the service's number, or a ufunc's or reduction's name. `dtype` is the
    result's; `data_type` what the request asks for."""
    shape = _inference.broadcast(node.shape, *(one.shape for one in more)) if more else node.shape
    if _graph.check_reduction is not None:
        _graph.check_reduction(function, node, axes, data_type)
    whole = len(axes) == len(shape) and not keepdims
    shape = () if whole else tuple([1 if i in axes else n for i, n in enumerate(shape) if keepdims or i not in axes])
    prepared = _prepared(function, axes, keepdims, data_type, skip_nan, correction)
    if where is True and initial is None and not more:
        host = None
        if node.buffer is not None and node.buffer.is_local and node.size and not skip_nan and type(function) is int:
            host = _on_host(function, axes, keepdims, dtype, correction)
        return wrap(record(node.session, shape, dtype, prepared, (node,), host=host))
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


# By the service's number: NumPy's function, and whether it computes in the result's type.
_NUMPYS = {
    _F.FUNCTION_SUM: (np.sum, True), _F.FUNCTION_PROD: (np.prod, True), _F.FUNCTION_MEAN: (np.mean, True),
    _F.FUNCTION_MIN: (np.min, False), _F.FUNCTION_MAX: (np.max, False), _F.FUNCTION_ANY: (np.any, False),
    _F.FUNCTION_ALL: (np.all, False), _F.FUNCTION_COUNT_NONZERO: (np.count_nonzero, False),
}


@functools.lru_cache(maxsize=1024)
def _on_host(function: int, axes: tuple, keepdims: bool, dtype: np.dtype, correction: float = 0.0):
    """The reduction by NumPy, of a local array (`_local.py`)."""
    if function in (_F.FUNCTION_VAR, _F.FUNCTION_STD):
        return functools.partial(
            _variance_on_host, axes=axes, keepdims=keepdims, dtype=dtype, correction=correction,
            root=function == _F.FUNCTION_STD)
    if function == _F.FUNCTION_NORM:
        return functools.partial(_norm_on_host, axes=axes, keepdims=keepdims, dtype=dtype)
    numpys, in_type = _NUMPYS.get(function, (None, False))
    if numpys is None:
        return None
    if in_type:
        return _local.wide(numpys, dtype, axis=axes, keepdims=keepdims)
    return functools.partial(numpys, axis=axes, keepdims=keepdims)


def _variance_on_host(
    values: np.ndarray, axes: tuple, keepdims: bool, dtype: np.dtype, correction: float, root: bool
) -> np.ndarray:
    """`numpy.var` would warn again of too few elements."""
    wide = values.astype(np.complex128 if values.dtype.kind == "c" else np.float64)
    with np.errstate(all="ignore"):
        sizes = np.abs(wide - np.mean(wide, axis=axes, keepdims=True))
        squares = np.sum(sizes * sizes, axis=axes, keepdims=keepdims)
        left = math.prod(values.shape[i] for i in axes) - correction
        variance = squares / np.float64(left if left > 0 else 0)
        return (np.sqrt(variance) if root else variance).astype(dtype)


def _norm_on_host(values: np.ndarray, axes: tuple, keepdims: bool, dtype: np.dtype) -> Optional[np.ndarray]:
    """None where squares may leave the range, which the service's do not."""
    wide = np.abs(values).astype(np.float64, copy=False)
    squares = np.sum(wide * wide, axis=axes, keepdims=keepdims)
    return np.sqrt(squares).astype(dtype) if ((squares > 1e-200) & (squares < 1e200)).all() else None


@functools.lru_cache(maxsize=1024)
def _prepared(function: Union[int, str], axes: tuple, keepdims: bool, data_type: Optional[np.dtype],
              skip_nan: bool = False, correction: float = 0.0) -> Prepared:
    """A reduction by these, of any one input."""
    reduction = pb.Reduction(axes=axes, keep_dims=keepdims, skip_nan=skip_nan, correction=correction)
    if isinstance(function, str):
        reduction.function_name = function
    else:
        reduction.function = function
    if data_type is not None:
        reduction.data_type = _dtypes.NUMBERS[data_type]
    # A reduction that leaves NaN out would wait for the code of each new expression (decision 0041).
    computes = isinstance(function, int) and not skip_nan
    return Prepared(pb.Operation(reduction=reduction), "reduction", ("input",), computes=computes)


def _of_one(array: Array, name: str, where, initial) -> Array:
    """Reduction along no axes: each element by itself."""
    from stride import _ufunc_methods

    return array if where is True and initial is None else _ufunc_methods.of_each(name, array, initial, where)


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


def _summing_into(function: int, x, axis, dtype, out, keepdims: bool, initial, where) -> Array:
    x, out = array_of(x), _one_out(out)
    if dtype is None and np.can_cast(x.dtype, out.dtype, "safe"):
        dtype = out.dtype
    return _give(_summing(function, x, axis, dtype, keepdims, initial, where), out, "unsafe")


def _one_out(out):
    from stride import _arguments

    return _arguments.one_out(out)


def _give(result: Array, out, casting: str = "same_kind") -> Array:
    if out is None:
        return result
    from stride import _arguments

    return _arguments.give(result, out, casting)


def sum(a, axis=None, dtype=None, out=None, keepdims: bool = False, initial=None, where=True) -> Array:  # noqa: A001
    """The sum of elements along axes.

    Parameters
        a: array of any shape.
        axis: None for all, an integer, or a tuple of them.
        dtype: in which to sum; integers default to int64 or uint64, others to their own type.
        out: array of the result's shape that takes it.
        keepdims: whether the axes stay, with one element each.
        initial: a number to begin with.
        where: bools that broadcast with `a`; elements where it is false are left out.
    Returns
        An array of `dtype` without the axes.
    Raises
        AxisError for an axis that `a` lacks; ShapeMismatch for an `out` of another shape.
    Example
        >>> st.sum(st.array([[1, 2], [3, 4]]), axis=0).tolist()
        [4, 6]
    """
    if out is None:
        if type(a) is not Array and type(a) in _local.classes:
            is_plain = dtype is initial is None and not keepdims and where is True
            if is_plain and (short := _local.reduced("sum", a, axis)) is not None:
                return short
        return _summing(_F.FUNCTION_SUM, a, axis, dtype, keepdims, initial, where)
    return _summing_into(_F.FUNCTION_SUM, a, axis, dtype, out, keepdims, initial, where)


def prod(a, axis=None, dtype=None, out=None, keepdims: bool = False, initial=None, where=True) -> Array:
    """The product of elements along axes.

    Parameters
        a: array of any shape.
        axis: None for all, an integer, or a tuple of them.
        dtype: in which to multiply; integers default to int64 or uint64, others to their own type.
        out: array of the result's shape that takes it.
        keepdims: whether the axes stay, with one element each.
        initial: a number to begin with.
        where: bools that broadcast with `a`; elements where it is false are left out.
    Returns
        An array of `dtype` without the axes.
    Raises
        AxisError for an axis that `a` lacks; ShapeMismatch for an `out` of another shape.
    Example
        >>> st.prod(st.array([[1, 2], [3, 4]]), axis=1).tolist()
        [2, 12]
    """
    if out is None:
        return _summing(_F.FUNCTION_PROD, a, axis, dtype, keepdims, initial, where)
    return _summing_into(_F.FUNCTION_PROD, a, axis, dtype, out, keepdims, initial, where)


def _extreme(function: int, name: str, x, axis, keepdims: bool, initial, where) -> Array:
    if type(x) in _local.classes and initial is None and where is True and not keepdims:
        if (short := _local.reduced(name, x, axis)) is not None:
            return short
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


def min(a, axis=None, out=None, keepdims: bool = False, initial=None, where=True) -> Array:  # noqa: A001
    """The least element along axes; NaN where one is NaN.

    Parameters
        a: array of any shape.
        axis: None for all, an integer, or a tuple of them.
        out: array of the result's shape that takes it.
        keepdims: whether the axes stay, with one element each.
        initial: a number to compare with as well; needed for empty arrays and with `where`.
        where: bools that broadcast with `a`; elements where it is false are left out.
    Returns
        An array of `a`'s type without the axes.
    Raises
        ValueError for an empty array without `initial`; AxisError for an axis that `a` lacks.
    Example
        >>> st.min(st.array([[3, 2], [1, 4]]), axis=1).tolist()
        [2, 1]
    """
    return _give(_extreme(_F.FUNCTION_MIN, "min", a, axis, keepdims, initial, where), out, "unsafe")


def max(a, axis=None, out=None, keepdims: bool = False, initial=None, where=True) -> Array:  # noqa: A001
    """The greatest element along axes.

    Parameters
        a: array of any shape.
        axis: None for all, an integer, or a tuple of them.
        out: array of the result's shape that takes it.
        keepdims: whether the axes stay, with one element each.
        initial: a number to compare with as well; needed for empty arrays and with `where`.
        where: bools that broadcast with `a`; elements where it is false are left out.
    Returns
        An array of `a`'s type without the axes.
    Raises
        ValueError for an empty array without `initial`; AxisError for an axis that `a` lacks.
    Example
        >>> int(st.max(st.array([[3, 2], [1, 4]])))
        4
    """
    return _give(_extreme(_F.FUNCTION_MAX, "max", a, axis, keepdims, initial, where), out, "unsafe")


amin, amax = min, max


def ptp(a, axis=None, out=None, keepdims: bool = False) -> Array:
    """The greatest element less the least, along axes.

    Parameters
        a: array of numbers of any shape, not of bools.
        axis: None for all, an integer, or a tuple of them.
        out: array of the result's shape that takes it.
        keepdims: whether the axes stay, with one element each.
    Returns
        An array of `a`'s type without the axes.
    Raises
        ValueError for an empty array; DataTypeMismatch for bools.
    Example
        >>> st.ptp(st.array([[3, 2], [1, 4]]), axis=1).tolist()
        [1, 3]
    """
    a = array_of(a)
    return _give(max(a, axis, None, keepdims) - min(a, axis, None, keepdims), out, "unsafe")


def _truth(function: int, x, axis, keepdims: bool, where) -> Array:
    if type(x) in _local.classes and where is True and not keepdims:
        name = "any" if function == _F.FUNCTION_ANY else "all"
        if (short := _local.reduced(name, x, axis)) is not None:
            return short
    array = x if isinstance(x, Array) else wrap(node_of(x))
    axes = _inference.reduced_axes(axis, array.ndim)
    if not axes and array.ndim:
        return _of_one(array.astype(bool), "logical_or" if function == _F.FUNCTION_ANY else "logical_and", where, None)
    return reduce_by(function, array._node, axes, keepdims, _dtypes.bool, None, where)


def any(a, axis=None, out=None, keepdims: bool = False, *, where=True) -> Array:  # noqa: A001
    """Whether an element is not zero, along axes.

    Parameters
        a: array of any shape and type.
        axis: None for all, an integer, or a tuple of them.
        out: array of the result's shape that takes it.
        keepdims: whether the axes stay, with one element each.
        where: bools that broadcast with `a`; elements where it is false are left out.
    Returns
        An array of bool without the axes; NaN counts as true.
    Raises
        AxisError for an axis that `a` lacks.
    Example
        >>> st.any(st.array([[0, 1], [0, 0]]), axis=1).tolist()
        [True, False]
    """
    return _give(_truth(_F.FUNCTION_ANY, a, axis, keepdims, where), out, "unsafe")


def all(a, axis=None, out=None, keepdims: bool = False, *, where=True) -> Array:  # noqa: A001
    """Whether every element is not zero, along axes.

    Parameters
        a: array of any shape and type.
        axis: None for all, an integer, or a tuple of them.
        out: array of the result's shape that takes it.
        keepdims: whether the axes stay, with one element each.
        where: bools that broadcast with `a`; elements where it is false are left out.
    Returns
        An array of bool without the axes; NaN counts as true.
    Raises
        AxisError for an axis that `a` lacks.
    Example
        >>> st.all(st.array([[0, 1], [2, 3]]), axis=1).tolist()
        [False, True]
    """
    return _give(_truth(_F.FUNCTION_ALL, a, axis, keepdims, where), out, "unsafe")


def _place(function: int, name: str, x, axis: Optional[int], keepdims: bool, skip_nan: bool = False) -> Array:
    if type(x) in _local.classes and not keepdims and not skip_nan:
        if (short := _local.reduced(name, x, axis)) is not None:
            return short
    node = node_of(x)
    if not node.shape and axis is not None and operator.index(axis) in (0, -1):
        axis = None
    axes = tuple(range(len(node.shape))) if axis is None else (_inference.normal_axis(axis, len(node.shape)),)
    if any_(node.shape[i] == 0 for i in axes) and math.prod(n for i, n in enumerate(node.shape) if i not in axes):
        raise ValueError(f"an empty array has no {name}; its shape is {node.shape}")
    # The request's "all" is no axis: of several it takes no list.
    shape = tuple(1 if i in axes else n for i, n in enumerate(node.shape) if keepdims or i not in axes)

    prepared = _prepared(function, () if axis is None else axes, keepdims, None, skip_nan)
    host = None if skip_nan else functools.partial(getattr(np, name), axis=axis, keepdims=keepdims)
    return wrap(record(node.session, shape, _dtypes.int64, prepared, (node,), host=host))


def argmin(a, axis: Optional[int] = None, out=None, *, keepdims: bool = False) -> Array:
    """The place of the least element along an axis, the first of equal ones; that of the first NaN where there is one.

    Parameters
        a: array of any shape but an empty one.
        axis: None for a place among all elements in C order, or an integer.
        out: array of int64 of the result's shape that takes it.
        keepdims: whether the axis stays, with one element.
    Returns
        An array of int64 without the axis.
    Raises
        ValueError for an empty array; AxisError for an axis that `a` lacks.
    Example
        >>> st.argmin(st.array([[3, 2], [1, 4]]), axis=1).tolist()
        [1, 0]
    """
    return _give(_place(_F.FUNCTION_ARGMIN, "argmin", a, axis, keepdims), out, "no")


def argmax(a, axis: Optional[int] = None, out=None, *, keepdims: bool = False) -> Array:
    """The place of the greatest element along an axis.

    Parameters
        a: array of any shape but an empty one.
        axis: None for a place among all elements in C order, or an integer.
        out: array of int64 of the result's shape that takes it.
        keepdims: whether the axis stays, with one element.
    Returns
        An array of int64 without the axis.
    Raises
        ValueError for an empty array; AxisError for an axis that `a` lacks.
    Example
        >>> int(st.argmax(st.array([3, 9, 1])))
        1
    """
    return _give(_place(_F.FUNCTION_ARGMAX, "argmax", a, axis, keepdims), out, "no")


def count_nonzero(a, axis=None, *, keepdims: bool = False) -> Array:
    """The number of elements that are not zero, along axes.

    Parameters
        a: array of any shape and type.
        axis: None for all, an integer, or a tuple of them.
        keepdims: whether the axes stay, with one element each.
    Returns
        An array of int64 without the axes.
    Raises
        AxisError for an axis that `a` lacks.
    Example
        >>> st.count_nonzero(st.array([[0, 1], [2, 3]]), axis=0).tolist()
        [1, 2]
    """
    array = a if isinstance(a, Array) else wrap(node_of(a))
    axes = _inference.reduced_axes(axis, array.ndim)
    if not axes and array.ndim:
        return (array != 0).astype(_dtypes.int64)
    return reduce_by(_F.FUNCTION_COUNT_NONZERO, array._node, axes, keepdims, _dtypes.int64)


def norm(x, /, *, axis=None, keepdims: bool = False) -> Array:
    """The Euclidean norm along axes: the square root of the sum of |x|**2.

    Parameters
        x: an array, or what becomes one.
        axis: the axis, or for several a tuple; None for all.
        keepdims: whether the axes stay, with one element.
    Returns
        An array of floats without the axes.
    Raises
        AxisError for an axis that `x` lacks.
    Example
        >>> float(st.norm(st.array([3.0, 4.0])))
        5.0
    """
    if type(x) in _local.classes and not keepdims:
        if (short := _local.reduced("norm", x, axis)) is not None:
            return short
    node = node_of(x)
    dtype = {"c": _dtypes.float32 if node.dtype == _dtypes.complex64 else _dtypes.float64, "f": node.dtype}.get(
        "f" if _dtypes.is_float(node.dtype) else node.dtype.kind, _dtypes.float64)
    axes = _inference.normal_axes(axis, len(node.shape))
    if not axes and node.shape:
        return absolute(x).astype(dtype)
    return reduce_by(_F.FUNCTION_NORM, node, axes, keepdims, dtype)
