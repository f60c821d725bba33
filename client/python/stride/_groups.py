"""Numbers of one group reduced to one: by keys, by small integers, and by bins."""

import functools
import math
import operator
from typing import Tuple

import numpy as np

from stride import _dtypes, _errors, _inference, _manipulation, _reductions, _ufunc_methods, _unique
from stride._array import _SCALARS, Array, node_of
from stride._graph import Node
from stride._numbers import Number
from stride._routines import _array, _indices, _record, prepared_with
from stride.v1 import operation_pb2 as pb

__all__ = ["bincount", "group_reduce", "group_sum"]


def group_reduce(function: str, values, groups, num_groups: int, *, axis: int = 0, dtype=None) -> Array:
    """The elements of each group along an axis, combined by a function of two inputs (`add`, `maximum`, a client's):
    element g along the result's axis is of those whose group is g, in their order. A group that no element has gets
    the function's identity. `values` may be one number for all.

    Parameters
        function: the name of a function of two inputs, such as `add`.
        values: an array, or one number for all places.
        groups: integers from 0 to `num_groups` - 1, one for each element along the axis.
        num_groups: how many groups there are.
        axis: the axis along which the groups lie.
        dtype: the element type of the result; by default the one that NumPy gives it.
    Returns
        An array with `num_groups` elements along the axis.
    Raises
        IndexError for a group outside; NotFound for a function that there is not.
    Example
        >>> st.group_reduce("add", st.array([1, 2, 4]), st.array([0, 1, 0]), 2).tolist()
        [5, 2]
    """
    groups = _indices(groups)
    value = Number(values) if isinstance(values, _SCALARS) else node_of(values, groups.session)
    if type(value) is Number:
        shape, kind = (num_groups,), value.type if isinstance(value.type, np.dtype) else np.asarray(value.value).dtype
        axis = 0
    else:
        axis = _inference.normal_axis(axis, len(value.shape))
        shape, kind = (*value.shape[:axis], num_groups, *value.shape[axis + 1:]), value.dtype
        if groups.shape != (value.shape[axis],):
            raise _errors.ShapeMismatch(
                f"groups of {groups.shape} for {value.shape[axis]} elements", reason="SHAPE_MISMATCH"
            )
    kind = _ufunc_methods.accumulated_type(function, kind) if dtype is None else _dtypes.dtype_of(dtype)
    message = pb.GroupReduce(function=function, num_groups=num_groups, axis=axis, data_type=_dtypes.NUMBERS[kind])
    nodes: Tuple[Node, ...] = (groups._node,)
    if type(value) is Node:
        nodes = (groups._node, value)
    else:
        message.values.scalar.CopyFrom(value.to_proto())
    prepared = prepared_with(pb.Operation(group_reduce=message), "group_reduce", ("groups", "values"))
    return _record(prepared, shape, kind, nodes)


def bincount(x, /, weights=None, minlength: int = 0) -> Array:
    """How often each number occurs, or the sum of its weights; the greatest is read to know how many there are.

    Parameters
        x: an array of one axis of integers that are not negative.
        weights: an array of its shape.
        minlength: how many counts there are at least.
    Returns
        An array of int64, or with weights of float64.
    Raises
        ValueError for negative numbers; DataTypeMismatch for what are no integers; ShapeMismatch.
    Example
        >>> st.bincount(st.array([0, 2, 2])).tolist()
        [1, 0, 2]
    """
    from stride import _creation

    minlength = operator.index(minlength)
    if minlength < 0:
        raise ValueError("'minlength' must not be negative")
    x = _array(np.zeros(0, np.int64) if isinstance(x, (list, tuple)) and not len(x) else x)
    if x.ndim != 1 or x.dtype.kind not in "biu":
        raise _errors.DataTypeMismatch(f"bincount is of one axis of integers, not {x.ndim} of {x.dtype}")
    x = x.astype(_dtypes.int64, copy=False)
    length = minlength
    if x.size:
        least, greatest = _extent(x)
        if least < 0:
            raise ValueError("bincount takes no negative numbers")
        length = max(minlength, int(greatest) + 1)
    if weights is None:
        return group_reduce("add", 1, x, length) if length else _creation.zeros((0,), dtype=_dtypes.int64)
    weights = _array(weights).astype(_dtypes.float64, copy=False)
    if weights.shape != x.shape:
        raise _errors.ShapeMismatch(f"bincount of {x.shape} with weights of {weights.shape}")
    if not length:  # without numbers NumPy counts, whatever the weights
        return _creation.zeros((0,), dtype=_dtypes.int64)
    return group_reduce("add", weights, x, length)


def histogram(x, /, bins=10, range=None, weights=None) -> Tuple[Array, Array]:  # noqa: A002
    """NumPy's: counts in `bins` (a number of equal ones, or their edges), and the edges."""
    x = _array(x)
    uniform = None
    if isinstance(bins, (int, np.integer)):
        edges = _uniform_edges(x, int(bins), range)
        # In single precision the edges are what NumPy makes of them, step by step.
        if edges.dtype == _dtypes.float64:
            uniform = pb.Histogram.Uniform(count=int(bins), low=edges[0], high=edges[-1])
        edges = _array(edges)
    else:
        edges = _array(bins)
        if edges.ndim != 1 or edges.size < 2:
            raise ValueError("the edges of bins are one axis of two or more")
        if not edges.session._is_trace:  # where nothing can be read
            known = edges._read()
            if (known[:-1] > known[1:]).any():
                raise ValueError("the edges of bins must not fall")
    if x.dtype.kind == "f" and edges.dtype.kind == "f" and x.dtype.itemsize < edges.dtype.itemsize:
        x = x.astype(edges.dtype)  # an element is compared with the edges as they are
    nodes = [x._node] if uniform else [x._node, edges._node]
    kind = _dtypes.int64
    if weights is not None:
        weights = _array(weights)
        if weights.shape != x.shape:
            raise _errors.ShapeMismatch(f"a histogram of {x.shape} with weights of {weights.shape}")
        nodes.append(weights._node)
        kind = _dtypes.float64 if weights.dtype.kind in "biu" else weights.dtype
    inputs = ("input", *(() if uniform else ("edges",)), *(() if weights is None else ("weights",)))
    prepared = prepared_with(pb.Operation(histogram=pb.Histogram(uniform=uniform)), "histogram", inputs)
    counts = _record(prepared, (edges.size - 1,), kind, tuple(nodes))
    return counts if weights is None else counts.astype(weights.dtype, copy=False), edges


def _extent(x: Array) -> tuple:
    """The least and the greatest element, read in one round trip."""
    ends = _reductions.min(x), _reductions.max(x)
    return tuple([values[()] for values in x.session._read_several([one._node for one in ends])])


def _uniform_edges(x: Array, bins: int, range) -> np.ndarray:  # noqa: A002
    if bins < 1:
        raise ValueError(f"a histogram has at least one bin, not {bins}")
    if range is None:
        low, high = _extent(x) if x.size else (0.0, 1.0)
    else:
        low, high = range
    if type(low) in (int, float) and type(high) in (int, float):  # as programs give them, again and again
        return _known_edges(low, high, bins, x.dtype)
    return _edges_between(low, high, bins, x.dtype)


def _edges_between(low, high, bins: int, dtype: np.dtype) -> np.ndarray:
    if not (math.isfinite(low) and math.isfinite(high)) or low > high:
        raise ValueError(f"a histogram's range is finite and rises, not {low} to {high}")
    if low == high:
        low, high = low - 0.5, high + 0.5
    kind = np.result_type(low, high, dtype)
    edges = np.linspace(low, high, bins + 1, dtype=np.result_type(kind, float) if kind.kind in "biu" else kind)
    if (edges[:-1] >= edges[1:]).any():
        raise ValueError(f"Too many bins for data range. Cannot create {bins} finite-sized bins.")
    edges.setflags(write=False)
    return edges


_known_edges = functools.lru_cache(maxsize=64, typed=True)(_edges_between)


def group_sum(keys, values, /) -> Tuple[Array, Array]:
    """The different keys in order, and the sum of the values of each, in NumPy's order of summation from first to last.

    Parameters
        keys: an array of one axis.
        values: an array with as many elements.
    Returns
        A tuple of two arrays: the keys and the sums.
    Raises
        ShapeMismatch for another number of values.
    Example
        >>> [one.tolist() for one in st.group_sum(st.array([7, 5, 7]), st.array([1, 2, 4]))]
        [[5, 7], [2, 5]]
    """
    values = _array(values)
    groups = _unique.unique_inverse(keys)
    if groups.inverse_indices.shape != values.shape:
        raise _errors.ShapeMismatch(f"keys of {groups.inverse_indices.shape} group values of {values.shape}")
    size = (values.size,)
    return groups.values, group_reduce(
        "add",
        _manipulation.reshape(values, size),
        _manipulation.reshape(groups.inverse_indices, size),
        groups.values.size,
    )
