"""Elements chosen by conditions and places, and writes to them."""

import math
import operator
from typing import Any, Callable, List, Optional, Sequence, Tuple

import numpy as np

from stride import (
    _arguments, _assembly, _casts, _creation, _dtypes, _elementwise, _errors, _inference, _manipulation, _routines,
)
from stride._array import _SCALARS, Array, array_of, host_array
from stride._manipulation import broadcast_to, reshape

__all__ = [
    "apply_along_axis",
    "apply_over_axes",
    "argwhere",
    "choose",
    "compress",
    "copyto",
    "extract",
    "flatnonzero",
    "piecewise",
    "place",
    "putmask",
    "ravel_multi_index",
    "select",
    "unravel_index",
]


# --- by conditions ---


def argwhere(a: Any) -> Array:
    """The places of the elements that are not zero, one in a row; they are counted first, which is one round trip.

    Parameters
        a: an array.
    Returns
        An array of int64 with a column for each axis.
    Example
        >>> st.argwhere(st.array([[0, 1], [2, 0]])).tolist()
        [[0, 1], [1, 0]]
    """
    array = array_of(a)
    if not array.ndim:
        (places,) = _routines.nonzero(reshape(array, (1,)))
        return reshape(places, (places.size, 1))[:, :0]
    return _assembly.stack(_routines.nonzero(array), 1)


def flatnonzero(a: Any) -> Array:
    """The places in C order of the elements that are not zero: one round trip.

    Parameters
        a: an array, or what becomes one.
    Returns
        An array of int64 of one axis.
    Example
        >>> st.flatnonzero(st.array([[0, 1], [2, 0]])).tolist()
        [1, 2]
    """
    return _routines.nonzero(_manipulation.ravel(a))[0]


def _condition(condition: Any, session: Any) -> Array:
    array = condition if isinstance(condition, Array) else array_of(condition, session)
    return array if array.dtype.kind == "b" else array != 0


def compress(condition: Any, a: Any, axis: Optional[int] = None, out: Any = None) -> Array:
    """The slices along an axis at which a condition is true; they are counted first, which is one round trip.

    Parameters
        condition: an array of one axis, which may be shorter than the axis.
        a: an array.
        axis: the axis; None takes all elements in C order.
        out: array of the result's shape that takes it.
    Returns
        An array of `a`'s type.
    Raises
        ValueError for a condition of more axes; IndexError for a true one beyond the axis.
    Example
        >>> st.compress([True, False, True], st.arange(3)).tolist()
        [0, 2]
    """
    array = array_of(a)
    mask = _condition(condition, array.session)
    if mask.ndim != 1:
        raise ValueError("condition must be a 1-d array")
    if axis is None:
        array, axis = reshape(array, (array.size,)), 0
    if not array.ndim:
        array = reshape(array, (1,))
    axis = _inference.normal_axis(axis, array.ndim)
    extent = array.shape[axis]
    (places,) = _routines.nonzero(mask)
    if mask.size > extent:
        known = places._read()
        if known.size and known[-1] >= extent:
            raise IndexError(f"index {known[-1]} is out of bounds for axis {axis} with size {extent}")
    return _arguments.give(_routines.take(array, places, axis=axis), out)


def extract(condition: Any, arr: Any) -> Array:
    """The elements at which a condition of the same size is not zero, in C order: one round trip.

    Parameters
        condition, arr: arrays of one size.
    Returns
        An array of one axis.
    Raises
        IndexError where the condition is longer and true there.
    Example
        >>> st.extract([[True, False]], [[5, 6]]).tolist()
        [5]
    """
    x, mask = _arguments.arrays(arr, condition)
    return compress(_manipulation.ravel(mask), _manipulation.ravel(x), 0)


def select(condlist: Sequence, choicelist: Sequence, default: Any = 0) -> Array:
    """For each element the choice whose condition is the first that is true.

    Parameters
        condlist: arrays of bool.
        choicelist: as many numbers or arrays, which broadcast with them.
        default: where no condition is true.
    Returns
        An array of the type that choices and default have together.
    Raises
        ValueError for lists of different lengths and empty ones; TypeError for conditions that are no bools.
    Example
        >>> x = st.arange(4)
        >>> st.select([x < 1, x > 2], [10, x], -1).tolist()
        [10, -1, -1, 3]
    """
    if len(condlist) != len(choicelist):
        raise ValueError("list of cases must be same length as list of conditions")
    if len(condlist) == 0:
        raise ValueError("select with an empty condition list is not possible")
    conditions = _arguments.arrays(*condlist)
    for i, one in enumerate(conditions):
        if one.dtype.kind != "b":
            raise TypeError(f"invalid entry {i} in condlist: should be boolean ndarray")
    values = [one if isinstance(one, (*_SCALARS, Array)) else host_array(one) for one in (*choicelist, default)]
    kind = _casts.result_type(*values)
    session = conditions[0].session

    def cast(one: Any) -> Array:
        given = one if isinstance(one, Array) else np.asarray(host_array(one), kind)
        return array_of(given, session).astype(kind, copy=False)

    shape = _inference.broadcast(
        *(one.shape for one in conditions),
        *(one.shape if isinstance(one, Array) else np.shape(one) for one in (*choicelist, default)),
    )
    result = cast(default)
    for condition, choice in zip(reversed(conditions), reversed(list(choicelist))):
        result = _elementwise.where(condition, cast(choice), result)
    return result if result.shape == shape else _casts.copy(broadcast_to(result, shape))


def piecewise(x: Any, condlist: Any, funclist: Sequence, *args: Any, **kw: Any) -> Array:
    """For each element the result of the function with the last true condition. The functions receive all
    elements.

    Parameters
        x: an array.
        condlist: bools of `x`'s shape, or a list of such.
        funclist: as many functions or numbers, or one more for where no condition is true.
        args, kw: are passed to the functions.
    Returns
        An array of `x`'s shape and type.
    Raises
        ValueError for another number of functions.
    Example
        >>> st.piecewise(st.array([-1.0, 2.0]), [[True, False]], [lambda v: -v, 5.0]).tolist()
        [1.0, 5.0]
    """
    array = array_of(x)
    single = isinstance(condlist, (bool, np.bool_)) or getattr(condlist, "ndim", 1) == 0 or (
        not isinstance(condlist[0], (list, tuple, Array, np.ndarray)) and array.ndim
    ) or (isinstance(condlist, (Array, np.ndarray)) and condlist.ndim == array.ndim and array.ndim)
    conditions = [_condition(one, array.session) for one in ([condlist] if single else condlist)]
    if len(funclist) not in (len(conditions), len(conditions) + 1):
        raise ValueError(
            f"with {len(conditions)} condition(s), either {len(conditions)} or {len(conditions) + 1} functions are "
            "expected"
        )
    if len(funclist) == len(conditions) + 1:
        none_true = ~conditions[0]
        for one in conditions[1:]:
            none_true = none_true & ~one
        conditions.append(none_true)
    result = _creation.zeros_like(array)
    for condition, function in zip(conditions, funclist):
        value = function(array, *args, **kw) if callable(function) else function
        value = array_of(value, array.session).astype(array.dtype, copy=False)
        result = _elementwise.where(condition, value, result)
    return result


def choose(a: Any, choices: Any, out: Any = None, mode: str = "raise") -> Array:
    """For each element the one of the arrays whose number it is.

    Parameters
        a: an array of integers.
        choices: a sequence of arrays that broadcast with it, or an array whose first axis they are along.
        out: array of the result's shape that takes it.
        mode: what a number outside means: `raise` (an error when the result is read), `wrap` or `clip`.
    Returns
        An array of the type that the choices have together.
    Raises
        ValueError for a number outside, where the host knows it; IndexError when the result is read.
    Example
        >>> st.choose([1, 0], [[10, 11], [20, 21]]).tolist()
        [20, 11]
    """
    given = list(choices)
    indices, *arrays = _arguments.arrays(a, *given)
    if indices.dtype.kind not in "biu":
        raise TypeError(f"Cannot cast array data from {indices.dtype!r} to dtype('int64') according to the rule 'safe'")
    if not arrays:
        raise ValueError("choose needs at least one array of choices")
    indices = indices.astype(_dtypes.int64, copy=False)
    count, mode = len(arrays), _arguments.index_mode(mode)
    if mode == "wrap":
        indices = indices % count
    elif mode == "clip":
        indices = _elementwise.clip(indices, 0, count - 1)
    else:
        known = indices._node.cached()
        if known is not None and known.size and not (0 <= known.min() and known.max() < count):
            raise ValueError("invalid entry in choice array")
        # A negative number is outside here, and one that gather would count from the end.
        indices = _elementwise.where(indices < 0, count, indices)
    shape = _inference.broadcast(indices.shape, *(one.shape for one in arrays))
    # A Python number is weak.
    kind = _casts.result_type(*(one if type(one) in (int, float, complex) else array
                                       for one, array in zip(given, arrays))) if count > 1 else arrays[0].dtype
    stacked = _assembly.stack([broadcast_to(one.astype(kind, copy=False), shape) for one in arrays])
    chosen = _routines.take_along_axis(stacked, _manipulation.expand_dims(broadcast_to(indices, shape), 0), axis=0)
    return _arguments.give(reshape(chosen, shape), out, "unsafe")


# --- writes ---


def copyto(dst: Any, src: Any, casting: str = "same_kind", where: Any = True) -> None:
    """Writes one array into another.

    Parameters
        dst: the array that is changed; one of the host gets what is read.
        src: what broadcasts to it.
        casting: which casts are made.
        where: bools that broadcast with `dst`; elements where it is false stay.
    Returns
        None.
    Raises
        DataTypeMismatch for a cast that is not made; ShapeMismatch where shapes do not fit.
    Example
        >>> x = st.zeros(2)
        >>> st.copyto(x, [1, 2])
        >>> x.tolist()
        [1.0, 2.0]
    """
    from stride import _indexing

    if isinstance(dst, np.ndarray):
        source = src._read() if isinstance(src, Array) else src
        mask = where._read() if isinstance(where, Array) else where
        np.copyto(dst, source, casting=casting, where=mask)  # type: ignore[arg-type]
        return
    if not isinstance(dst, Array):
        raise TypeError(f"copyto changes an array, not {type(dst).__name__}")
    is_number = isinstance(src, (bool, int, float, complex)) and not isinstance(src, np.generic)
    kind = src.dtype if isinstance(src, Array) else host_array(src).dtype
    if is_number:
        # NumPy's own rules of numbers, and its errors: into no elements, so that nothing is computed.
        np.copyto(np.empty(0, dst.dtype), src, casting=casting)  # type: ignore[call-overload]
    elif not np.can_cast(kind, dst.dtype, casting):
        raise _errors.DataTypeMismatch(
            f"Cannot cast array data from {kind} to {dst.dtype} according to the rule {casting!r}",
            reason="DATA_TYPE_MISMATCH",
        )
    value = src if isinstance(src, Array) else array_of(np.asarray(host_array(src)).astype(dst.dtype), dst.session)
    value = _indexing.fitted(value.astype(dst.dtype, copy=False), dst.shape)
    if where is True:
        _indexing.write(dst, value)
        return
    if not isinstance(where, (Array, np.ndarray, np.generic)):
        where = np.asarray(where, np.bool_)  # any number, and lists of numbers, as NumPy has it
    mask = where if isinstance(where, Array) else array_of(where, dst.session)
    if mask.dtype.kind != "b":
        raise _errors.DataTypeMismatch(f"where= is an array of bool, not of {mask.dtype}", reason="DATA_TYPE_MISMATCH")
    mask = _indexing.fitted(mask, dst.shape)
    _indexing.write(dst, _elementwise.where(mask, value, dst))


def putmask(a: Any, mask: Any, values: Any) -> None:
    """Writes the elements at which a mask is true; values of another size are repeated over all elements in C order.

    Parameters
        a: the array that is changed.
        mask: an array of `a`'s shape.
        values: the values.
    Returns
        None.
    Raises
        ValueError for a mask of another size; ShapeMismatch for another shape.
    Example
        >>> x = st.arange(4)
        >>> st.putmask(x, x > 1, [10, 20])
        >>> x.tolist()
        [0, 1, 10, 20]
    """
    from stride import _indexing

    if isinstance(a, np.ndarray):
        np.putmask(a, host_array(mask), host_array(values))
        return
    if not isinstance(a, Array):
        raise TypeError(f"putmask changes an array, not {type(a).__name__}")
    where = _condition(mask, a.session)
    if where.size != a.size:
        raise ValueError("putmask: mask and data must be the same size")
    value = array_of(values, a.session).astype(a.dtype, copy=False)
    if not value.size or not a.size:
        return
    if value.shape != a.shape:
        flat = reshape(value, (value.size,))
        value = flat if flat.size == 1 else _assembly.tile(flat, -(-a.size // flat.size))[:a.size].reshape(a.shape)
    _indexing.write(a, _elementwise.where(reshape(where, a.shape), value, a))


def place(arr: Any, mask: Any, vals: Any) -> None:
    """Writes the first of the values at the first place at which a mask is true, the second at the next, and so on; few
    values are repeated. The places are counted: one round trip.

    Parameters
        arr: the array that is changed.
        mask: an array of `arr`'s size.
        vals: the values, at least one.
    Returns
        None.
    Raises
        ValueError for no values where the mask is true, and for a mask of another size.
    Example
        >>> x = st.arange(4)
        >>> st.place(x, x > 0, [7, 8])
        >>> x.tolist()
        [0, 7, 8, 7]
    """
    if isinstance(arr, np.ndarray):
        np.place(arr, host_array(mask), host_array(vals))
        return
    if not isinstance(arr, Array):
        raise TypeError(f"argument 1 must be numpy.ndarray, not {type(arr).__name__}")
    where = _condition(mask, arr.session)
    if where.size != arr.size:
        raise ValueError("place: mask and data must be the same size")
    (places,) = _routines.nonzero(reshape(where, (where.size,)))
    values = array_of(vals, arr.session)
    if places.size and not values.size:
        raise ValueError("Cannot insert from an empty array!")
    _routines.put(arr, places, values.astype(arr.dtype, copy=False))


# --- places ---


def _strides(dims: Tuple[int, ...], order: Optional[str]) -> List[int]:
    order = _arguments.check_order("C" if order is None else order, ("C", "F"))
    strides = [1] * len(dims)
    sequence = range(len(dims) - 2, -1, -1) if order == "C" else range(1, len(dims))
    for i in sequence:
        beside = i + 1 if order == "C" else i - 1
        strides[i] = strides[beside] * dims[beside]
    return strides


def ravel_multi_index(multi_index: Any, dims: Any, mode: Any = "raise", order: str = "C") -> Array:
    """The places along one axis of elements given by their indices along several.

    Parameters
        multi_index: integers for each axis, in a tuple or along the first axis of an array.
        dims: the shape.
        mode: what an index outside means: `raise`, `wrap` or `clip`; or one for each axis.
        order: C or F.
    Returns
        An array of int64.
    Raises
        ValueError for an index outside, or IndexError when the result is read; TypeError for what are no integers.
    Example
        >>> st.ravel_multi_index(([1, 0], [2, 1]), (3, 4)).tolist()
        [6, 1]
    """
    dims = _creation._shape(dims)
    indices = _arguments.arrays(*multi_index)
    if len(indices) != len(dims):
        raise ValueError(f"parameter multi_index must be a sequence of length {len(dims)}")
    if math.prod(dims) > np.iinfo(np.int64).max:
        raise ValueError("invalid dims: array size defined by dims is larger than the maximum possible size.")
    if any(not extent for extent in dims) and any(one.size for one in indices):
        raise ValueError("cannot ravel indices into a shape without elements")
    modes = list(mode) if isinstance(mode, (tuple, list)) else [mode] * len(dims)
    if len(modes) != len(dims):
        raise ValueError("as many modes as axes are needed")
    total: Any = None
    for one, extent, stride, how in zip(indices, dims, _strides(dims, order), map(_arguments.index_mode, modes)):
        if one.dtype.kind not in "biu":
            raise TypeError("only int indices permitted")
        one = one.astype(_dtypes.int64, copy=False)
        if how == "wrap":
            one = one % extent
        elif how == "clip":
            one = _elementwise.clip(one, 0, extent - 1)
        else:
            one = _inside(one, extent, "invalid entry in coordinates array")
        total = one * stride if total is None else total + one * stride
    return total


def _inside(indices: Array, extent: int, message: str) -> Array:
    """The same integers. Those that the host has are judged here; others when they are read, by a gather from as many
    zeros, which take no memory."""
    known = indices._node.cached()
    if known is not None or not extent:
        if indices.size and (known is None or known.min() < 0 or known.max() >= extent):
            raise ValueError(message)
        return indices
    zeros = broadcast_to(_creation.full_in(indices.session, (1,), 0, _dtypes.int64), (extent,))
    return indices + _routines.gather(zeros, [_elementwise.where(indices < 0, extent, indices)], 0)


def unravel_index(indices: Any, shape: Any, order: str = "C") -> Tuple[Array, ...]:
    """The indices along the axes of a shape of elements given by their place along one.

    Parameters
        indices: integers.
        shape: the shape.
        order: C or F.
    Returns
        A tuple of arrays of int64, one for each axis.
    Raises
        ValueError for a place outside, or IndexError when the result is read; TypeError for what are no integers.
    Example
        >>> [int(one) for one in st.unravel_index(6, (3, 4))]
        [1, 2]
    """
    dims = _creation._shape(shape)
    strides = _strides(dims, order)
    if math.prod(dims) > np.iinfo(np.int64).max:
        raise ValueError("dimensions are too large: their product is no int64")
    array = array_of(indices)
    known = array._node.cached()
    if not dims and array.ndim and not (known is not None and known.any()):
        raise ValueError("multiple indices are not supported for 0d array")
    if array.dtype.kind not in "iu":
        raise TypeError("only int indices permitted")
    array = array.astype(_dtypes.int64, copy=False)
    size = math.prod(dims)
    array = _inside(array, size, f"an index is out of bounds for an array with size {size}")
    return tuple((array // stride) % max(extent, 1) for extent, stride in zip(dims, strides))


# --- functions along axes ---


def apply_along_axis(func1d: Callable, axis: int, arr: Any, *args: Any, **kwargs: Any) -> Array:
    """The results of a function for each slice along one axis. It is called once per slice: a function of
    whole arrays is faster.

    Parameters
        func1d: a function of an array of one axis.
        axis: the axis.
        arr: an array.
        args, kwargs: are passed on.
    Returns
        An array in which the axis is replaced by those of a result.
    Raises
        ValueError for an array without slices; AxisError for an axis that `arr` lacks.
    Example
        >>> st.apply_along_axis(lambda v: v[0] + v[-1], 1, st.array([[1, 2, 3], [4, 5, 6]])).tolist()
        [4, 10]
    """
    array = array_of(arr)
    axis = _inference.normal_axis(axis, array.ndim)
    rest = array.shape[:axis] + array.shape[axis + 1:]
    if not math.prod(rest):
        raise ValueError("Cannot apply_along_axis when any iteration dimensions are 0")
    lines = _manipulation.moveaxis(array, axis, -1)
    results = [array_of(func1d(lines[place], *args, **kwargs), array.session) for place in np.ndindex(*rest)]
    first = results[0]
    results = [one.astype(first.dtype, copy=False) for one in results]
    stacked = reshape(_assembly.stack(results), (*rest, *first.shape))
    own = list(range(len(rest), stacked.ndim))
    return _manipulation.permute_dims(stacked, (*range(axis), *own, *range(axis, len(rest))))


def apply_over_axes(func: Callable, a: Any, axes: Any) -> Array:
    """Applies a function of an array and an axis to one axis after another, and restores axes that it drops.

    Parameters
        func: a function of an array and an axis.
        a: an array, or what becomes one.
        axes: the axes, one after another.
    Returns
        An array.
    Raises
        ValueError for a function that changes the number of axes by more than one.
    Example
        >>> st.apply_over_axes(st.sum, st.ones((2, 3, 4)), [0, 2]).tolist()
        [[[8.0], [8.0], [8.0]]]
    """
    array = array_of(a)
    rank = array.ndim
    for axis in [axes] if np.ndim(axes) == 0 else list(axes):
        axis = operator.index(axis)
        axis = axis + rank if axis < 0 else axis
        result = array_of(func(array, axis))
        if result.ndim != array.ndim:
            result = _manipulation.expand_dims(result, axis)
            if result.ndim != array.ndim:
                raise ValueError("function is not returning an array of the correct shape")
        array = result
    return array
