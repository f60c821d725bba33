"""Arrays made of parts of others: joined, stacked, tiled, repeated, rolled."""

import builtins
import itertools
import operator
from typing import Callable, List, Optional, Sequence, Tuple, Union

import numpy as np

from stride import _casts, _dtypes, _errors, _inference, _manipulation
from stride._array import Array, array_of, host_array, wrap
from stride._casts import _copy, copy
from stride._graph import Assembly, Node, record
from stride._indexing import make_view
from stride._manipulation import _strides
from stride._numbers import Number
from stride._views import View

__all__ = ["concat", "concatenate", "repeat", "roll", "stack", "tile"]


def concat(arrays, axis: Optional[int] = 0, out=None, *, dtype=None, casting: str = "same_kind") -> Array:
    """Arrays one after another along an axis.

    Parameters
        arrays: a sequence of arrays that agree on every other axis.
        axis: the axis; None flattens them first.
        out: array of the result's shape that takes it.
        dtype: the result's type, by default the one that they have together.
        casting: which casts to `dtype` or `out` are made.
    Returns
        An array.
    Raises
        ValueError for no arrays, and for ones without axes; ShapeMismatch; DataTypeMismatch for a refused cast.
    Example
        >>> st.concat([st.arange(2), st.arange(3)]).tolist()
        [0, 1, 0, 1, 2]
    """
    if isinstance(arrays, Array) and not arrays.ndim:
        raise TypeError("concat takes a sequence of arrays")
    arrays = given = list(sequence_of(arrays))
    if not arrays:
        raise ValueError("at least one array is needed")
    for array in arrays:
        if not isinstance(array, Array):
            from stride import _arguments

            arrays = list(_arguments.arrays(*arrays))
            break
    if axis is None:
        # Only this function accepts numbers among the arrays; Python's are weak.
        if dtype is None and out is None and any(type(one) in (int, float, complex) for one in given):
            dtype, casting = _casts.result_type(*(one if type(one) in (int, float, complex) else array
                                           for one, array in zip(given, arrays))), "unsafe"
        arrays, axis = [flat(array) for array in arrays], 0
    first = arrays[0]
    if not first.ndim:
        raise ValueError("arrays without axes cannot be put one after another; stack them")
    axis = _inference.normal_axis(axis, first.ndim)
    if casting != "same_kind":
        from stride import _arguments

        _arguments.check_casting(casting)
    for array in arrays:
        if array.shape == first.shape:
            continue
        if array.ndim != first.ndim or any(
            n != m for i, (n, m) in enumerate(zip(array.shape, first.shape)) if i != axis
        ):
            raise _errors.ShapeMismatch(
                "arrays must agree on every other axis: " + ", ".join(str(one.shape) for one in arrays)
            )
    if dtype is not None:
        if out is not None:
            raise TypeError("out= has a type of its own: give it or dtype=")
        dtype = _dtypes.dtype_of(dtype)
        arrays = [_cast(array, dtype, casting) for array in arrays]
    if out is not None:
        from stride import _arguments

        return _arguments.give(_join(arrays, axis), out, casting)
    return _join(arrays, axis)


concatenate = concat


def _cast(array: Array, dtype: np.dtype, casting: str) -> Array:
    if not np.can_cast(array.dtype, dtype, casting):
        raise _errors.DataTypeMismatch(
            f"elements of {array.dtype} are not cast to {dtype} with casting {casting!r}", reason="DATA_TYPE_MISMATCH"
        )
    return _casts.astype(array, dtype, copy=False)


def _join(arrays: List[Array], axis: int) -> Array:
    first = arrays[0]
    extents = [array.shape[axis] for array in arrays]
    shape = first.shape[:axis] + (builtins.sum(extents),) + first.shape[axis + 1:]
    ends = list(itertools.accumulate(extents))
    parts = [View((("slice", axis, end - extent, end, None),)) for extent, end in zip(extents, ends)]
    return _assembled(arrays, shape, parts, lambda *values: np.concatenate(values, axis))


def _assembled(arrays: List[Array], shape: Tuple[int, ...], parts: List[View], host: Callable) -> Array:
    """A new array of which each array fills a part; together they fill all. `host`: NumPy's function of their
    elements."""
    dtype = _casts.result_type(*arrays) if len({array.dtype for array in arrays}) > 1 else arrays[0].dtype
    filled = [(array._node, part) for array, part in zip(arrays, parts)]
    return assembled(arrays[0].session, shape, dtype, filled, host=host)


def assembled(
    session, shape: Tuple[int, ...], dtype: np.dtype, filled: Sequence[Tuple[Union[Node, Number], View]],
    is_zeroed: bool = False, host: Optional[Callable] = None,
) -> Array:
    """A new array made of nodes and numbers, each with the part that it fills: see Assembly. `host` as in
    _graph.record, of all of them."""
    filled = [one for one in filled if type(one[0]) is Number or one[0].size]
    op = Assembly(tuple([part for _, part in filled]), is_zeroed)
    return wrap(record(session, shape, dtype, op, tuple([one for one, _ in filled]), host=host))


def make_empty(flush, node: Node) -> None:
    """A builder's first command, where others write all elements."""
    flush.make_empty(node, node.handle)


def copy_into(flush, node: Node, operand, part: View) -> None:
    """Copies an operand into a part of the array that a builder makes."""
    operation = flush.begin(flush.view(node.handle, part, node.origin), node.origin)
    operation.outputs[0].existing = True
    operation.copy.input.CopyFrom(operand)


def sequence_of(arrays):
    """Arrays to join, which NumPy takes as a sequence and not from an iterator."""
    if not hasattr(arrays, "__getitem__"):
        raise TypeError("arrays to join are passed as a sequence, such as a list or a tuple")
    return arrays


def stack(arrays, axis: int = 0, out=None, *, dtype=None, casting: str = "same_kind") -> Array:
    """Arrays of one shape side by side along a new axis.

    Parameters
        arrays: a sequence of arrays that agree on every other axis.
        axis: the axis; None flattens them first.
        out: array of the result's shape that takes it.
        dtype: the result's type, by default the one that they have together.
        casting: which casts to `dtype` or `out` are made.
    Returns
        An array.
    Raises
        ValueError for no arrays, and for ones without axes; ShapeMismatch; DataTypeMismatch for a refused cast.
    Example
        >>> st.stack([st.arange(2), st.arange(2)], axis=1).tolist()
        [[0, 0], [1, 1]]
    """
    arrays = list(sequence_of(arrays))
    if not builtins.all(type(array) is Array for array in arrays):
        from stride import _arguments

        arrays = list(_arguments.arrays(*arrays))
    if not arrays:
        raise ValueError("at least one array is needed")
    if any(array.shape != arrays[0].shape for array in arrays):
        raise _errors.ShapeMismatch(
            "arrays to stack must have one shape: " + ", ".join(str(array.shape) for array in arrays)
        )
    axis = _inference.normal_axis(axis, arrays[0].ndim + 1)
    if dtype is None and out is None and casting == "same_kind":
        first = arrays[0]
        parts = [View((("index", axis, i),)) for i in range(len(arrays))]
        shape = first.shape[:axis] + (len(arrays),) + first.shape[axis:]
        return _assembled(arrays, shape, parts, lambda *values: np.stack(values, axis))
    expanded = [_manipulation.expand_dims(array, axis=axis) for array in arrays]
    return concat(expanded, axis, out, dtype=dtype, casting=casting)


def flat(x: Array) -> Array:
    """All elements in C order, for reading: the array itself where it has one axis."""
    return x if x.ndim == 1 else _manipulation.reshape(x, (x.size,))


def tile(A, reps) -> Array:  # noqa: N803, NumPy's name
    """An array repeated as a whole.

    Parameters
        A: an array.
        reps: how often along each axis; an integer or a sequence of them.
    Returns
        An array of `A`'s type.
    Raises
        ValueError for a negative number.
    Example
        >>> st.tile(st.arange(2), 2).tolist()
        [0, 1, 0, 1]
    """
    x, repetitions = array_of(A), reps
    repetitions = (repetitions,) if hasattr(repetitions, "__index__") and np.ndim(repetitions) == 0 else repetitions
    repetitions = tuple(operator.index(n) for n in repetitions)
    if any(n < 0 for n in repetitions):
        raise ValueError(f"an array is not repeated less than 0 times: {repetitions}")
    rank = builtins.max(x.ndim, len(repetitions))
    shape = (1,) * (rank - x.ndim) + x.shape
    repetitions = (1,) * (rank - len(repetitions)) + repetitions
    between = _manipulation.reshape(x, tuple(n for extent in shape for n in (1, extent)))
    wide = _manipulation.broadcast_to(between, tuple(n for pair in zip(repetitions, shape) for n in pair))
    return _manipulation.reshape(_copy(wide._node), tuple(r * n for r, n in zip(repetitions, shape)))


def repeat(a, repeats, axis: Optional[int] = None) -> Array:
    """Each element, or each slice along an axis, several times.

    Parameters
        a: an array.
        repeats: how often: an integer, or one for each element; counts in an array of the service are read.
        axis: the axis; None flattens `a` first.
    Returns
        An array of `a`'s type.
    Raises
        ValueError for a negative number; ShapeMismatch where counts do not fit the axis.
    Example
        >>> st.repeat(st.arange(3), 2).tolist()
        [0, 0, 1, 1, 2, 2]
    """
    x = array_of(a)
    if axis is None or not x.ndim and operator.index(axis) in (0, -1):
        x, axis = flat(x), 0
    axis = _inference.normal_axis(axis, x.ndim)
    extent = x.shape[axis]
    counts = host_array(repeats)
    if counts.dtype.kind not in "biu" and counts.size:
        raise _errors.DataTypeMismatch(
            f"repeat counts with integers, not with {counts.dtype}", reason="DATA_TYPE_MISMATCH"
        )
    if counts.ndim > 1 or counts.ndim and counts.shape[0] not in (1, extent):
        raise _errors.ShapeMismatch(
            f"repeat's counts of shape {counts.shape} do not fit an axis of {extent} elements", reason="SHAPE_MISMATCH"
        )
    counts = np.broadcast_to(counts.astype(np.int64), (extent,)) if counts.ndim else counts
    if counts.ndim and extent and counts.min() != counts.max():
        return _repeat_each(x, counts.tolist(), axis)
    repeats = int(counts.flat[0]) if counts.size else 1
    if repeats < 0:
        raise ValueError("counts cannot be negative")
    node, before, after = x._node, x.shape[:axis + 1], x.shape[axis + 1:]
    strides = _strides(node)
    steps = ("reshape", before + (1,) + after), ("broadcast", before + (repeats,) + after)
    wide = make_view(node, steps, steps[1][1], strides[:axis + 1] + (0,) + strides[axis + 1:])
    return _manipulation.reshape(_copy(wide), before[:-1] + (extent * repeats,) + after)


def _repeat_each(x: Array, counts: List[int], axis: int) -> Array:
    if builtins.min(counts) < 0:
        raise ValueError("counts cannot be negative")
    before = (slice(None),) * axis
    parts = [_manipulation.broadcast_to(x[before + (slice(i, i + 1),)], x.shape[:axis] + (count,) + x.shape[axis + 1:])
             for i, count in enumerate(counts) if count]
    return concat(parts, axis=axis) if parts else copy(x[before + (slice(0, 0),)])


def roll(a, shift, axis=None) -> Array:
    """The elements moved along axes; those that leave at the end come in at the beginning.

    Parameters
        a: an array.
        shift: by how many places; an integer or one for each axis.
        axis: the axes; None moves all elements in C order.
    Returns
        An array of `a`'s shape and type.
    Raises
        AxisError for an axis that `a` lacks; ValueError for shifts and axes of different numbers.
    Example
        >>> st.roll(st.arange(4), 1).tolist()
        [3, 0, 1, 2]
    """
    x = array_of(a)
    if axis is None:
        if x.ndim != 1:
            return _manipulation.reshape(roll(_manipulation.reshape(x, (x.size,)), shift, axis=0), x.shape)
        axis = 0
    axes = tuple(axis) if isinstance(axis, (tuple, list)) else (axis,)
    shifts = tuple(map(operator.index, shift if isinstance(shift, (tuple, list)) or np.ndim(shift) else (shift,)))
    shifts = shifts * len(axes) if len(shifts) == 1 else shifts
    axes = axes * len(shifts) if len(axes) == 1 else axes
    if len(shifts) != len(axes):
        raise ValueError("as many shifts as axes are needed")
    result = x
    for one, amount in zip(axes, shifts):
        one = _inference.normal_axis(one, x.ndim)
        extent = x.shape[one]
        amount = amount % extent if extent else 0
        if amount and x.size:
            result = _rolled(result._node, one, amount)
    return copy(x) if result is x else result


def _rolled(node: Node, axis: int, amount: int) -> Array:
    """Moves by 0 < `amount` < the axis's extent: two copies into one result."""
    rest = node.shape[axis] - amount

    def build(flush, result, operands):
        flush.make_empty(result, result.handle)
        for begin, end, to in ((rest, rest + amount, 0), (0, rest, amount)):
            source = flush.view(operands[0].handle, View((("slice", axis, begin, end, None),)), result.origin)
            target = flush.view(result.handle, View((("slice", axis, to, to + end - begin, None),)), result.origin)
            flush.copy_into(source, target, result.origin)

    return wrap(record(node.session, node.shape, node.dtype, build, (node,)))
