"""Shapes and types of results, without the daemon: NumPy's own rules.

A type is a np.dtype, or one of Python's int, float, complex for a number that has none of its own."""

import functools
import operator
from typing import Tuple

import numpy as np

from stride import _dtypes, _errors

Shape = Tuple[int, ...]

_ROUNDING = ("ceil", "floor", "trunc")


def broadcast(*shapes: Shape) -> Shape:
    """The common shape."""
    first = shapes[0]
    if shapes.count(first) == len(shapes):
        return first
    rank = max(map(len, shapes))
    result = [1] * rank
    for shape in shapes:
        for i, extent in enumerate(shape, rank - len(shape)):
            if extent != 1:
                if result[i] not in (1, extent):
                    raise _errors.ShapeMismatch(
                        "Shapes do not broadcast: " + ", ".join(map(str, shapes)), reason="SHAPE_MISMATCH"
                    )
                result[i] = extent
    return tuple(result)


def _stand_in(type_):
    return type_ if isinstance(type_, np.dtype) else {int: 0, float: 0.0, complex: 0j}[type_]


@functools.lru_cache(maxsize=4096)
def promote(*types) -> np.dtype:
    """np.result_type, in which Python's numbers are weak."""
    if _dtypes.bfloat16 is not None and _dtypes.bfloat16 in types:
        return _restored(promote(*_without_bfloat16(types)), types)
    return np.result_type(*map(_stand_in, types))


def _without_bfloat16(types) -> tuple:
    """bfloat16 promotes as float16 does, and with that to float32."""
    other = _dtypes.float32 if _dtypes.float16 in types else _dtypes.float16
    return tuple(other if one == _dtypes.bfloat16 else one for one in types)


def _restored(dtype: np.dtype, types) -> np.dtype:
    return _dtypes.bfloat16 if dtype == _dtypes.float16 and _dtypes.float16 not in types else dtype


def real_type(type_):
    return {_dtypes.complex64: _dtypes.float32, _dtypes.complex128: _dtypes.float64}.get(type_, type_)


@functools.lru_cache(maxsize=4096)
def elementwise(name: str, *types) -> Tuple[np.dtype, np.dtype]:
    """The type in which `name` (a function of the service) computes on these types, and that of its result."""
    if _dtypes.bfloat16 is not None and _dtypes.bfloat16 in types:
        loop, result = elementwise(name, *_without_bfloat16(types))
        return _restored(loop, types), _restored(result, types)
    try:
        if name in ("real", "imag"):
            return types[0], real_type(types[0])
        if name == "where":
            common = promote(*types[1:])
            return common, common
        if name == "clip":
            common = promote(*types)
            return common, common
        if name in _ROUNDING and types[0].kind in "iub":
            return types[0], types[0]  # NumPy 2.0 still made these floats
        resolved = getattr(np, name).resolve_dtypes((*types, None))
    except (TypeError, ValueError):
        names = ", ".join(getattr(t, "name", None) or t.__name__ for t in types)
        raise _errors.DataTypeMismatch(f"{name} takes no such types: {names}", reason="DATA_TYPE_MISMATCH") from None
    if resolved[-1] not in _dtypes.NUMBERS:
        raise _errors.DataTypeMismatch(f"{name} would give {resolved[-1]}, which the service does not have")
    return resolved[0], resolved[-1]


def is_infinite(number) -> bool:
    return not isinstance(number, int) and bool(np.isinf(number))


def normal_axis(axis: int, rank: int) -> int:
    axis = operator.index(axis)
    if not -rank <= axis < rank:
        raise _errors.AxisError(f"axis {axis} is out of bounds for an array of {rank} axes", axis, rank)
    return axis + rank if axis < 0 else axis


# All axes of arrays of each rank; NumPy has at most 64.
_AXES = tuple(tuple(range(rank)) for rank in range(65))


def reduced_axes(axes, rank: int) -> Tuple[int, ...]:
    """As normal_axes; a number without axes may be reduced along 0 or -1, as in NumPy."""
    if axes is None:
        return _AXES[rank]
    if not rank and not isinstance(axes, (tuple, list)) and operator.index(axes) in (0, -1):
        return ()
    return normal_axes(axes, rank)


def normal_axes(axes, rank: int) -> Tuple[int, ...]:
    """All for None; each once."""
    if axes is None:
        return _AXES[rank]
    if not isinstance(axes, (tuple, list, range)):
        axes = (axes,)
    normal = tuple(normal_axis(axis, rank) for axis in axes)
    if len(set(normal)) != len(normal):
        raise _errors.InvalidArgument(f"an axis is named twice: {axes}")
    return normal


@functools.lru_cache(maxsize=4096)
def contiguous_strides(shape: Shape) -> Shape:
    """In elements, last axis fastest."""
    strides, stride = [], 1
    for extent in reversed(shape):
        strides.append(stride)
        stride *= extent
    return tuple(reversed(strides))


def reshaped_strides(shape: Shape, strides: Shape, new: Shape):
    """Strides of a view with the new shape, or None where only a copy has it: old and new axes are matched in
    runs of equal size."""
    old = [(n, s) for n, s in zip(shape, strides) if n != 1]
    result = [1] * len(new)
    i = j = 0
    while i < len(old) and j < len(new):
        i_end, j_end = i + 1, j + 1
        old_count, new_count = old[i][0], new[j]
        while old_count != new_count:
            if old_count < new_count:
                old_count *= old[i_end][0]
                i_end += 1
            else:
                new_count *= new[j_end]
                j_end += 1
        if any(old[k][1] != old[k + 1][0] * old[k + 1][1] for k in range(i, i_end - 1)):
            return None
        stride = old[i_end - 1][1]
        for k in range(j_end - 1, j - 1, -1):
            result[k] = stride
            stride *= new[k]
        i, j = i_end, j_end
    return tuple(result)
