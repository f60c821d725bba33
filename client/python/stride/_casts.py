"""Element types and memory orders: conversions and copies."""

import builtins
import functools
import sys
import warnings
from typing import List, Optional, Sequence

import numpy as np

from stride import _dtypes, _graph, _inference
from stride._array import Array, array_of, wrap
from stride._graph import Node, Prepared, record
from stride._session import _device_name
from stride.v1 import operation_pb2 as pb

__all__ = ["astype", "can_cast", "result_type"]


def can_cast(from_, to, casting: str = "safe") -> bool:
    """Whether one element type, or an array's, may be cast to another.

    Parameters
        from_: a type or an array.
        to: a type.
        casting: no, equiv, safe, same_kind or unsafe.
    Returns
        A bool.
    Raises
        TypeError for a Python number, whose type depends on its value.
    Example
        >>> st.can_cast(st.int32, st.float64)
        True
    """
    return np.can_cast(from_.dtype if isinstance(from_, Array) else from_, to, casting)


def result_type(*arrays_and_dtypes) -> np.dtype:
    """The type that arrays, numbers and types have together by NumPy 2's rules, in which Python's numbers are weak.

    Parameters
        arrays_and_dtypes: arrays, Python's numbers and types; at least one.
    Returns
        A numpy.dtype.
    Raises
        DataTypeMismatch for types that have none together.
    Example
        >>> st.result_type(st.array([1], st.int8), 3.0)
        dtype('float64')
    """
    types = [one.dtype if isinstance(one, (Array, np.ndarray)) else one for one in arrays_and_dtypes]
    if _dtypes.bfloat16 is not None and any(
        isinstance(one, (type, np.dtype)) and np.dtype(one) == _dtypes.bfloat16 for one in types
    ):
        numbers = {bool: _dtypes.bool, int: int, float: float, complex: complex}
        return _inference.promote(*(numbers.get(type(one)) or _dtypes.dtype_of(one) for one in types))
    return _dtypes.dtype_of(np.result_type(*types))


def astype(x: Array, dtype, /, *, copy: bool = True, device: Optional[str] = None) -> Array:
    """The elements in another type.

    Parameters
        x: an array.
        dtype: the type.
        copy: False gives `x` itself where it has the type.
        device: where the result is.
    Returns
        An array of `x`'s shape.
    Raises
        DataTypeMismatch for a type that the service does not have.
    Example
        >>> st.astype(st.array([1.7]), int).tolist()
        [1]
    """
    dtype, x = _dtypes.dtype_of(dtype), x if isinstance(x, Array) else array_of(x)
    node = x._node
    if node.dtype == dtype and not copy:
        return x
    warn_of_complex(node.dtype, dtype)
    if _graph.check_floats is not None:
        from stride import _float_errors

        _float_errors.of_cast(node, dtype)
    result = _copy(node, dtype)
    return result if device is None else result.to_device(device)


def warn_of_complex(given: np.dtype, dtype: np.dtype) -> None:
    """Warns where a cast drops imaginary parts, as NumPy does."""
    if given.kind == "c" and dtype.kind not in "cb":
        warnings.warn(
            "Casting complex values to real discards the imaginary part",
            np.exceptions.ComplexWarning,
            stacklevel=warning_level(),
        )


def warning_level() -> int:
    """The stacklevel of the first frame outside this package, counted from the function that warns."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("stride."):
        level, frame = level + 1, frame.f_back
    return level


def _copy(node: Node, dtype=None, device: str = "") -> Array:
    dtype = dtype or node.dtype
    data_type = _dtypes.NUMBERS[dtype]
    if not device:
        host = None
        if node.buffer is not None and node.buffer.is_local:
            host = functools.partial(_cast_on_host, dtype=dtype)
        return wrap(record(node.session, node.shape, dtype, _converting(data_type), (node,), host=host))

    def build(flush, result, operands):
        operation = pb.Operation(copy=pb.Copy(input=operands[0], data_type=data_type), device=device)
        operation.outputs.add(handle=result.handle)
        flush.add(operation, result.origin)

    return wrap(record(node.session, node.shape, dtype, build, (node,)))


def _cast_on_host(values: np.ndarray, dtype: np.dtype) -> Optional[np.ndarray]:
    """A copy in another type. None where NumPy's result depends on the processor: numbers out of the range of
    integers."""
    if values.dtype.kind == "c" and dtype.kind not in "cb":
        values = values.real
    if values.dtype.kind == "f" and dtype.kind in "iu":
        info = np.iinfo(dtype)
        if not ((values > info.min) & (values < info.max)).all():
            return None
    with np.errstate(over="ignore", invalid="ignore"):
        return values.astype(dtype, order="C")


@functools.lru_cache(maxsize=None)  # as many as there are types
def _converting(data_type: int) -> Prepared:
    return Prepared(pb.Operation(copy=pb.Copy(data_type=data_type)), "copy", ("input",))


def copy(x: Array) -> Array:
    result = _copy(x._node)
    if not x.ndim and x._node.strides is not None:
        result._node.strides = ()  # marks an array without axes, not a number
    return result


def memory_axes(order: Optional[str], rank: int, like: Optional[Array] = None) -> Optional[List[int]]:
    """The axes of a new array from the one whose elements lie furthest apart; None for C order. `like` is what A and K
    take the order from."""
    if order == "C" or order is None or rank < 2:
        return None
    order = order.upper()
    if order == "K":
        node = None if like is None else like._node
        if node is None or len(node.shape) != rank or node.strides is None or is_contiguous(node.shape, node.strides):
            return None
        axes = memory_order(node.strides)
        return None if axes == list(range(rank)) else axes
    if order == "F" or order == "A" and like is not None and lies_in_fortran_order(like._node):
        return list(range(rank))[::-1]
    return None


def inverse(axes: Sequence[int]) -> List[int]:
    """The permutation that undoes another."""
    return sorted(range(len(axes)), key=axes.__getitem__)


def lies_otherwise(x: Array, order: Optional[str]) -> bool:
    """Whether an array has to be copied for C or F."""
    if order is None or order.upper() not in ("C", "F") or x.ndim < 2:
        return False
    strides = x._node.strides or _inference.contiguous_strides(x.shape)
    if order.upper() == "F":
        return not is_contiguous(x.shape[::-1], strides[::-1])
    return not is_contiguous(x.shape, strides)


def _in_type(x: Array, dtype: Optional[np.dtype]) -> Array:
    """A copy in C order."""
    return copy(x) if dtype is None or dtype == x.dtype else astype(x, dtype)


def to_device(x: Array, device: str) -> Array:
    result = _copy(x._node, device=_device_name(device))
    result._node.device = _device_name(device)
    return result


def lies_in_fortran_order(node: Node) -> bool:
    """Whether the first axis is the fastest, and that is another order than C."""
    if node.strides is None or is_contiguous(node.shape, node.strides):
        return False
    return is_contiguous(node.shape[::-1], node.strides[::-1])


def is_contiguous(shape, strides) -> bool:
    """Whether elements lie in C order without gaps; axes of one element lie anyhow."""
    if 0 in shape:
        return True
    expected = 1
    for extent, stride in zip(reversed(shape), reversed(strides)):
        if extent != 1 and stride != expected:
            return False
        expected *= extent
    return True


def memory_order(strides: Sequence[int]) -> List[int]:
    """The axes from the one whose elements lie furthest apart, as NumPy's iterators sort them: an axis along which
    elements repeat (distance 0) stays where it is among the others."""
    fastest: List[int] = []
    for axis in reversed(range(len(strides))):
        place = len(fastest)
        for i in reversed(range(len(fastest))):
            if strides[axis] and strides[fastest[i]]:
                if builtins.abs(strides[fastest[i]]) <= builtins.abs(strides[axis]):
                    break
                place = i
        fastest.insert(place, axis)
    return fastest[::-1]
